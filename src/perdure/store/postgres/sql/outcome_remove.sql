-- Remove at most :count outcomes that no window looks at any more. One that somebody else removes is left to them.
WITH old AS MATERIALIZED (
    SELECT outcomes.organization, outcomes.kind, outcomes.since_us, outcomes.bucket_us, outcomes.writer
    FROM perdure_outcomes AS outcomes
    WHERE outcomes.bucket_us < %(before)s::bigint
    ORDER BY outcomes.bucket_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_outcomes AS outcomes
USING old
WHERE outcomes.organization = old.organization AND outcomes.kind = old.kind AND outcomes.since_us = old.since_us
AND outcomes.bucket_us = old.bucket_us AND outcomes.writer = old.writer
