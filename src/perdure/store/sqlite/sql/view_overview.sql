-- An organization at a glance, from counters and the heads of indexes only.
WITH filled AS MATERIALIZED (
    SELECT lanes.lane, lanes.queue, lanes.kind, counts.state, counts.count AS tasks
    FROM perdure_lanes AS lanes
    CROSS JOIN perdure_counts AS counts ON counts.lane = lanes.lane
    WHERE lanes.organization = :organization AND counts.count > 0
)
SELECT json_object(
    'counts', json((
        SELECT json_group_array(json_array(queue, kind, state, tasks) ORDER BY queue, kind, state)
        FROM (
            SELECT queue, kind, state, sum(tasks) AS tasks FROM filled WHERE state <> 'attempts' GROUP BY queue, kind, state
        )
    )),
    'workers_active', (
        SELECT count(*)
        FROM perdure_workers AS workers INDEXED BY perdure_workers_by_seen
        WHERE workers.seen_us >= :now - :active AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
        AND (
            workers.organizations = '[]'
            OR :organization IN (SELECT value FROM json_each(workers.organizations))
        )
    ),
    'oldest_queued_us', (
        SELECT min(min(
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
        ))
        FROM filled
        WHERE filled.state = 'queued'
    ),
    'oldest_active_us', (
        SELECT min(live.leased_us)
        FROM perdure_live AS live INDEXED BY perdure_live_held
        WHERE live.attempt_id IS NOT NULL AND live.organization = :organization
    ),
    'tasks', (SELECT coalesce(sum(tasks), 0) FROM filled WHERE state <> 'attempts'),
    'attempts', (SELECT coalesce(sum(tasks), 0) FROM filled WHERE state = 'attempts'),
    'results', (
        SELECT coalesce(sum(tasks), 0) FROM filled WHERE state IN ('succeeded', 'partially_succeeded')
    )
)
