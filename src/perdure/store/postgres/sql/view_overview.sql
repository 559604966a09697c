-- An organization at a glance, from counters and the heads of indexes only. `marks` are the places from which on the first
-- tasks of lanes are looked for, {lane: [in front, in line]}, and `heads` are where they are.
WITH filled AS MATERIALIZED (
    SELECT lanes.lane, lanes.queue, lanes.kind, counted.state, sum(counted.tasks)::bigint AS tasks
    FROM perdure_lanes AS lanes
    JOIN (
        SELECT counts.lane, counts.state, counts.count AS tasks FROM perdure_counts AS counts
        UNION ALL
        SELECT changes.lane, changes.state, changes.change FROM perdure_count_changes AS changes
    ) AS counted ON counted.lane = lanes.lane
    WHERE lanes.organization = %(organization)s::text
    GROUP BY lanes.lane, counted.state
    HAVING sum(counted.tasks) > 0
),
heads AS (
    -- In a lane, those in front and those in line each wait in the order in which they were queued.
    SELECT
        filled.lane, filled.queue, least(front.queued_us, line.queued_us) AS queued_us,
        front.seq AS front, line.seq AS line
    FROM filled
    LEFT JOIN LATERAL (
        SELECT live.queued_us, live.seq FROM perdure_live AS live
        WHERE live.lane = filled.lane AND live.state = 'queued'
        AND live.seq >= coalesce((%(marks)s::jsonb -> filled.lane::text ->> 0)::bigint, -4611686018427387904) AND live.seq < 0
        ORDER BY live.seq LIMIT 1
    ) AS front ON true
    LEFT JOIN LATERAL (
        SELECT live.queued_us, live.seq FROM perdure_live AS live
        WHERE live.lane = filled.lane AND live.state = 'queued'
        AND live.seq >= coalesce((%(marks)s::jsonb -> filled.lane::text ->> 1)::bigint, 0)
        ORDER BY live.seq LIMIT 1
    ) AS line ON true
    WHERE filled.state = 'queued'
)
SELECT json_build_object(
    'heads', (SELECT coalesce(json_agg(json_build_array(heads.lane, heads.front, heads.line)), '[]') FROM heads),
    'counts', coalesce((
        SELECT json_agg(json_build_array(queue, kind, state, tasks) ORDER BY queue, kind, state)
        FROM (
            SELECT filled.queue, filled.kind, filled.state, sum(filled.tasks)::bigint AS tasks
            FROM filled
            WHERE filled.state <> 'attempts'
            GROUP BY filled.queue, filled.kind, filled.state
        ) AS counted
    ), '[]'),
    'workers_active', (
        SELECT count(*)
        FROM perdure_workers AS workers
        WHERE workers.seen_us >= %(now)s::bigint - %(active)s::bigint
        AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
        AND (workers.organizations = '[]' OR workers.organizations ? %(organization)s::text)
    ),
    'oldest_queued_us', (SELECT min(heads.queued_us) FROM heads),
    'oldest_active_us', (
        -- What a worker held before lies dead in the index below the first fence that it may hold.
        SELECT min(held.leased_us)
        FROM perdure_workers AS workers
        CROSS JOIN LATERAL (
            SELECT min(live.leased_us) AS leased_us
            FROM perdure_live AS live
            WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.fence >= workers.held_from
            AND live.organization = %(organization)s::text
        ) AS held
    ),
    'tasks', (SELECT coalesce(sum(filled.tasks), 0) FROM filled WHERE filled.state <> 'attempts'),
    'attempts', (SELECT coalesce(sum(filled.tasks), 0) FROM filled WHERE filled.state = 'attempts'),
    'results', (
        SELECT coalesce(sum(filled.tasks), 0) FROM filled WHERE filled.state IN ('succeeded', 'partially_succeeded')
    )
)::text
