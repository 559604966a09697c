-- Note since when lanes cannot be served: some active worker serves their queue and organization, none has their kind.
-- What the workers serve and can do is gathered once, so that the cost is workers plus lanes, not their product.
WITH active AS MATERIALIZED (
    SELECT queues.value AS queue, organizations.value AS organization, workers.kinds
    FROM perdure_workers AS workers INDEXED BY perdure_workers_by_seen
    CROSS JOIN json_each(workers.queues) AS queues
    CROSS JOIN json_each(iif(workers.organizations = '[]', '["*"]', workers.organizations)) AS organizations
    WHERE workers.seen_us > :now - :active AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
),
served AS MATERIALIZED (
    SELECT DISTINCT queue, organization FROM active
),
able AS MATERIALIZED (
    SELECT DISTINCT active.queue, active.organization, kinds.value AS kind
    FROM active
    CROSS JOIN json_each(active.kinds) AS kinds
)
UPDATE perdure_lanes AS lanes
SET unroutable_since_us = CASE WHEN marked.unroutable THEN coalesce(lanes.unroutable_since_us, :now) END
FROM (
    SELECT
        lanes.lane,
        EXISTS (
            SELECT 1 FROM served
            WHERE served.queue = lanes.queue AND served.organization IN (lanes.organization, '*')
        ) AND NOT EXISTS (
            SELECT 1 FROM able
            WHERE able.queue = lanes.queue AND able.kind = lanes.kind AND able.organization IN (lanes.organization, '*')
        ) AS unroutable
    FROM json_each(:batch) AS ready
    CROSS JOIN perdure_lanes AS lanes ON lanes.lane = ready.value ->> 0
) AS marked
WHERE lanes.lane = marked.lane AND marked.unroutable <> (lanes.unroutable_since_us IS NOT NULL)
