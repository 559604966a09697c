-- Stage the oldest waiting tasks of a queue, locked in ascending order.
-- stages: ending
WITH purged AS (
    SELECT live.n, live.lane, live.job, live.state
    FROM perdure_live AS live
    WHERE live.organization = %(organization)s::text
    AND live.lane IN (
        SELECT lanes.lane FROM perdure_lanes AS lanes
        WHERE lanes.organization = %(organization)s::text AND lanes.queue = %(queue)s::text
    )
    AND live.state IN ('pending', 'queued', 'retrying')
    ORDER BY live.n
    LIMIT %(count)s::bigint
    FOR UPDATE OF live
)
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'n', n, 'lane', lane, 'job', job, 'from_state', state, 'state', 'cancelled', 'reason', 'purged',
    'actor', %(actor)s::text
)), '[]')::text
FROM purged
