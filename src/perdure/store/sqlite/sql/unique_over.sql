-- Remove keys whose holder is gone and whose time is over: at most :count.
DELETE FROM perdure_unique_keys AS keys
WHERE (organization, key) IN (
    SELECT organization, key
    FROM perdure_unique_keys AS over INDEXED BY perdure_unique_keys_left
    WHERE left_state IS NOT NULL AND until_us <= :now
    ORDER BY until_us
    LIMIT :count
)
