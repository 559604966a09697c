-- Remove keys whose holder is gone and whose time is over, the earliest first. One that is being taken over is left.
WITH over AS MATERIALIZED (
    SELECT keys.organization, keys.key
    FROM perdure_unique_keys AS keys
    WHERE keys.left_state IS NOT NULL AND keys.until_us <= %(now)s::bigint
    ORDER BY keys.until_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_unique_keys AS keys
USING over
WHERE keys.organization = over.organization AND keys.key = over.key AND keys.left_state IS NOT NULL
