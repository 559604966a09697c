-- Remove at most :count outcomes that no window looks at any more. Those of probes are kept until they have closed their
-- breaker.
DELETE FROM perdure_outcomes AS outcomes
WHERE (organization, kind, since_us, bucket_us, writer) IN (
    SELECT organization, kind, since_us, bucket_us, writer
    FROM perdure_outcomes AS old INDEXED BY perdure_outcomes_by_time
    WHERE bucket_us < :before AND NOT EXISTS (
        SELECT 1
        FROM perdure_breakers AS breakers
        WHERE breakers.organization = old.organization AND breakers.kind = old.kind AND breakers.since_us = old.since_us
        AND breakers.until_us IS NOT NULL
    )
    ORDER BY bucket_us
    LIMIT :count
)
