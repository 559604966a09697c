-- The policies of an organization's queues, what is in them, since when the oldest waits, and the kinds nobody has.
WITH filled AS MATERIALIZED (
    SELECT lanes.lane, lanes.queue, lanes.kind, counts.state, counts.count AS tasks
    FROM perdure_lanes AS lanes
    CROSS JOIN perdure_counts AS counts ON counts.lane = lanes.lane
    WHERE lanes.organization = :organization AND counts.count > 0 AND counts.state <> 'attempts'
),
offers AS MATERIALIZED (
    SELECT DISTINCT kind.value AS kind, queue.value AS queue
    FROM perdure_workers AS workers
    CROSS JOIN json_each(workers.kinds) AS kind
    CROSS JOIN json_each(iif(workers.queues = '[]', '[null]', workers.queues)) AS queue
    WHERE workers.seen_us >= :now - :active
    AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
    AND (
        workers.organizations = '[]'
        OR :organization IN (SELECT value FROM json_each(workers.organizations))
    )
)
SELECT json_object(
    'policies', json((
        SELECT json_group_array(json_array(name, json(document)) ORDER BY name)
        FROM perdure_definitions AS definitions
        WHERE organization = :organization AND type = 'queue'
    )),
    'counts', json((
        SELECT json_group_array(json_array(queue, state, tasks))
        FROM (SELECT queue, state, sum(tasks) AS tasks FROM filled GROUP BY queue, state)
    )),
    'oldest', json((
        -- In a lane, those in front (the first of all) and those behind each wait in the order in which they were queued.
        SELECT json_group_array(json_array(queue, oldest_us))
        FROM (
            SELECT
                filled.queue,
                min(min(
                    ifnull((
                        SELECT live.queued_us FROM perdure_live AS live INDEXED BY perdure_live_ready
                        WHERE live.lane = filled.lane AND live.state = 'queued'
                        ORDER BY live.seq LIMIT 1
                    ), :now),
                    ifnull((
                        SELECT live.queued_us FROM perdure_live AS live INDEXED BY perdure_live_ready
                        WHERE live.lane = filled.lane AND live.state = 'queued' AND live.seq >= 0
                        ORDER BY live.seq LIMIT 1
                    ), :now)
                )) AS oldest_us
            FROM filled
            WHERE filled.state = 'queued'
            GROUP BY filled.queue
        )
    )),
    'missing', json((
        SELECT json_group_array(json_array(queue, kind) ORDER BY queue, kind)
        FROM (
            SELECT DISTINCT filled.queue, filled.kind
            FROM filled
            WHERE filled.state = 'queued'
            AND NOT EXISTS (
                SELECT 1 FROM offers
                WHERE offers.kind = filled.kind AND (offers.queue IS NULL OR offers.queue = filled.queue)
            )
        )
    ))
)
