-- Remove what is told of acts of long ago, oldest first.
DELETE FROM perdure_events AS events
WHERE e IN (
    SELECT e FROM perdure_events AS events INDEXED BY perdure_events_acts
    WHERE n IS NULL AND job IS NULL AND at_us < :before ORDER BY at_us LIMIT :count
)
