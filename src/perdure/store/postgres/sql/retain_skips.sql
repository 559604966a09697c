-- Remove what is kept of skipped instants once that was long enough, oldest first.
DELETE FROM perdure_skips AS removed
USING (
    SELECT skips.organization, skips.schedule, skips.first_us
    FROM perdure_skips AS skips
    WHERE skips.at_us <= %(before)s::bigint
    ORDER BY skips.at_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
) AS over
WHERE removed.organization = over.organization AND removed.schedule = over.schedule
AND removed.first_us = over.first_us
