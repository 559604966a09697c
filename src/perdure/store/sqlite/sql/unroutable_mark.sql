-- Note since when lanes cannot be served: some active worker serves their queue and organization, none has their kind.
UPDATE perdure_lanes AS lanes
SET unroutable_since_us = CASE WHEN marked.unroutable THEN coalesce(lanes.unroutable_since_us, :now) END
FROM (
    SELECT
        lanes.lane,
        EXISTS (
            SELECT 1 FROM perdure_workers AS workers
            WHERE workers.seen_us > :now - :active AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
            AND EXISTS (SELECT 1 FROM json_each(workers.queues) WHERE value = lanes.queue)
            AND (workers.organizations = '[]'
                OR EXISTS (SELECT 1 FROM json_each(workers.organizations) WHERE value = lanes.organization))
        ) AND NOT EXISTS (
            SELECT 1 FROM perdure_workers AS workers
            WHERE workers.seen_us > :now - :active AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
            AND EXISTS (SELECT 1 FROM json_each(workers.queues) WHERE value = lanes.queue)
            AND (workers.organizations = '[]'
                OR EXISTS (SELECT 1 FROM json_each(workers.organizations) WHERE value = lanes.organization))
            AND EXISTS (SELECT 1 FROM json_each(workers.kinds) WHERE value = lanes.kind)
        ) AS unroutable
    FROM json_each(:batch) AS ready
    CROSS JOIN perdure_lanes AS lanes ON lanes.lane = ready.value ->> 0
) AS marked
WHERE lanes.lane = marked.lane AND marked.unroutable <> (lanes.unroutable_since_us IS NOT NULL)
