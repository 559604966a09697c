-- Remove at most :count outcomes that no window looks at any more.
DELETE FROM perdure_outcomes AS outcomes
WHERE (organization, kind, since_us, bucket_us, writer) IN (
    SELECT organization, kind, since_us, bucket_us, writer
    FROM perdure_outcomes AS old INDEXED BY perdure_outcomes_by_time
    WHERE bucket_us < :before
    ORDER BY bucket_us
    LIMIT :count
)
