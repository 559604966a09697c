-- Stage waiting tasks whose execution deadline has passed. What another run has is left to it.
-- stages: ending
WITH overdue AS (
    SELECT live.n, live.lane, live.job, live.state
    FROM perdure_live AS live
    WHERE live.deadline_us IS NOT NULL AND live.state IN ('pending', 'queued', 'retrying')
    AND live.deadline_us >= %(since)s::bigint AND live.deadline_us <= %(now)s::bigint
    ORDER BY live.deadline_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'n', overdue.n, 'lane', overdue.lane, 'job', overdue.job, 'from_state', overdue.state,
    'state', CASE
        WHEN coalesce((queue.document ->> 'dead_letters')::boolean, true) THEN 'dead_lettered'
        ELSE 'failed'
    END,
    'reason', 'deadline', 'actor', 'system'
)), '[]')::text
FROM overdue
JOIN perdure_lanes AS lanes ON lanes.lane = overdue.lane
LEFT JOIN perdure_definitions AS queue
    ON queue.organization = lanes.organization AND queue.type = 'queue' AND queue.name = lanes.queue
