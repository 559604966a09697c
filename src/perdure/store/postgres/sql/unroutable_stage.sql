-- Stage queued tasks that nobody could run for long enough. What another run has, or a claim, is left to it.
-- stages: ending
WITH unroutable AS (
    SELECT live.n, live.lane, live.job, live.state, lanes.organization, lanes.queue, lanes.kind
    FROM jsonb_array_elements(%(batch)s::jsonb) AS ready (value)
    JOIN perdure_lanes AS lanes ON lanes.lane = (ready.value ->> 0)::bigint
    JOIN perdure_live AS live ON live.lane = lanes.lane AND live.state = 'queued'
    WHERE lanes.unroutable_since_us IS NOT NULL
    AND lanes.unroutable_since_us + %(after)s::bigint <= %(now)s::bigint
    AND live.queued_us + %(after)s::bigint <= %(now)s::bigint
    LIMIT %(count)s::bigint
    FOR UPDATE OF live SKIP LOCKED
)
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'n', unroutable.n, 'lane', unroutable.lane, 'job', unroutable.job, 'from_state', unroutable.state,
    'state', CASE
        WHEN coalesce((queue.document ->> 'dead_letters')::boolean, true) THEN 'dead_lettered'
        ELSE 'failed'
    END,
    'reason', 'unroutable', 'actor', 'system',
    'error', json_build_object(
        'type', 'Unroutable',
        'message', 'no worker of queue ' || unroutable.queue || ' has the kind ' || unroutable.kind
    )::text
)), '[]')::text
FROM unroutable
LEFT JOIN perdure_definitions AS queue
    ON queue.organization = unroutable.organization AND queue.type = 'queue' AND queue.name = unroutable.queue
