-- Remove workers that nobody has seen for long and that hold nothing. One that is just saying something is left.
WITH gone AS MATERIALIZED (
    SELECT workers.id
    FROM perdure_workers AS workers
    WHERE workers.seen_us < %(before)s::bigint
    AND NOT EXISTS (
        SELECT 1 FROM perdure_live AS live
        WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.fence >= workers.held_from
    )
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_workers AS workers
USING gone
WHERE workers.id = gone.id AND workers.seen_us < %(before)s::bigint
