-- Remove what is told of acts of long ago, oldest first.
WITH gone AS MATERIALIZED (
    SELECT acts.e
    FROM perdure_events AS acts
    WHERE acts.n IS NULL AND acts.job IS NULL AND acts.at_us < %(before)s::bigint
    ORDER BY acts.at_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_events AS events
USING gone
WHERE events.e = gone.e
