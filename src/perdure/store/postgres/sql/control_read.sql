-- The cancels requested for what a worker holds. What it held before lies dead in the index below the first fence that it
-- may hold.
SELECT coalesce(jsonb_agg(jsonb_build_array(live.attempt_id, live.cancel_ends_us - %(now)s::bigint)), '[]')::text
FROM perdure_workers AS workers
CROSS JOIN LATERAL (
    SELECT live.attempt_id, live.cancel_ends_us, live.state
    FROM perdure_live AS live
    WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.fence >= workers.held_from
) AS live
WHERE workers.id = %(worker)s::text AND live.state = 'cancelling'
