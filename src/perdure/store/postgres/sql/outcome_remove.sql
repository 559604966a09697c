-- Remove at most :count outcomes that no window looks at any more. Those of probes are kept until they have closed their
-- breaker; one that somebody else removes is left to them.
WITH old AS MATERIALIZED (
    SELECT outcomes.organization, outcomes.kind, outcomes.since_us, outcomes.bucket_us, outcomes.writer
    FROM perdure_outcomes AS outcomes
    WHERE outcomes.bucket_us < %(before)s::bigint AND NOT EXISTS (
        SELECT 1
        FROM perdure_breakers AS breakers
        WHERE breakers.organization = outcomes.organization AND breakers.kind = outcomes.kind
        AND breakers.since_us = outcomes.since_us AND breakers.until_us IS NOT NULL
    )
    ORDER BY outcomes.bucket_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_outcomes AS outcomes
USING old
WHERE outcomes.organization = old.organization AND outcomes.kind = old.kind AND outcomes.since_us = old.since_us
AND outcomes.bucket_us = old.bucket_us AND outcomes.writer = old.writer
