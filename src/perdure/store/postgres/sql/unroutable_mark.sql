-- Note since when lanes cannot be served: some active worker serves their queue and organization, none has their kind.
-- What the workers serve and can do is gathered once, so that the cost is workers plus lanes, not their product.
WITH active AS MATERIALIZED (
    SELECT queues.value AS queue, organizations.value AS organization, workers.kinds
    FROM perdure_workers AS workers
    CROSS JOIN LATERAL jsonb_array_elements_text(workers.queues) AS queues (value)
    CROSS JOIN LATERAL jsonb_array_elements_text(
        CASE WHEN workers.organizations = '[]' THEN '["*"]' ELSE workers.organizations END
    ) AS organizations (value)
    WHERE workers.seen_us > %(now)s::bigint - %(active)s::bigint AND workers.left_us IS NULL
    AND workers.ordered <> 'revoke'
),
served AS MATERIALIZED (
    SELECT DISTINCT active.queue, active.organization FROM active
),
able AS MATERIALIZED (
    SELECT DISTINCT active.queue, active.organization, kinds.value AS kind
    FROM active
    CROSS JOIN LATERAL jsonb_array_elements_text(active.kinds) AS kinds (value)
),
looked AS MATERIALIZED (
    SELECT
        lanes.lane,
        EXISTS (
            SELECT 1 FROM served
            WHERE served.queue = lanes.queue AND served.organization IN (lanes.organization, '*')
        ) AND NOT EXISTS (
            SELECT 1 FROM able
            WHERE able.queue = lanes.queue AND able.kind = lanes.kind AND able.organization IN (lanes.organization, '*')
        ) AS unroutable
    FROM jsonb_array_elements(%(batch)s::jsonb) AS ready (value)
    JOIN perdure_lanes AS lanes ON lanes.lane = (ready.value ->> 0)::bigint
),
marked AS MATERIALIZED (
    SELECT lanes.lane, looked.unroutable
    FROM looked
    JOIN perdure_lanes AS lanes ON lanes.lane = looked.lane
    WHERE looked.unroutable <> (lanes.unroutable_since_us IS NOT NULL)
    ORDER BY lanes.lane
    FOR NO KEY UPDATE OF lanes SKIP LOCKED
)
UPDATE perdure_lanes AS lanes
SET unroutable_since_us = CASE WHEN marked.unroutable THEN coalesce(lanes.unroutable_since_us, %(now)s::bigint) END
FROM marked
WHERE lanes.lane = marked.lane
