-- Remove what is kept of skipped instants once that was long enough, oldest first.
DELETE FROM perdure_skips AS skips
WHERE (organization, schedule, first_us) IN (
    SELECT organization, schedule, first_us
    FROM perdure_skips AS skips
    WHERE at_us <= :before
    ORDER BY at_us
    LIMIT :count
)
