-- The policies of an organization's queues, what is in them, since when the oldest waits, and the kinds nobody has.
-- `marks` and `heads` are as in view_overview.
WITH filled AS MATERIALIZED (
    SELECT lanes.lane, lanes.queue, lanes.kind, counted.state, sum(counted.tasks)::bigint AS tasks
    FROM perdure_lanes AS lanes
    JOIN (
        SELECT counts.lane, counts.state, counts.count AS tasks FROM perdure_counts AS counts
        UNION ALL
        SELECT changes.lane, changes.state, changes.change FROM perdure_count_changes AS changes
    ) AS counted ON counted.lane = lanes.lane
    WHERE lanes.organization = %(organization)s::text
    AND counted.state <> 'attempts'
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
),
offers AS MATERIALIZED (
    SELECT DISTINCT kind.name AS kind, queue.name AS queue
    FROM perdure_workers AS workers
    CROSS JOIN jsonb_array_elements_text(workers.kinds) AS kind (name)
    LEFT JOIN jsonb_array_elements_text(workers.queues) AS queue (name) ON true
    WHERE workers.seen_us >= %(now)s::bigint - %(active)s::bigint
    AND workers.left_us IS NULL AND workers.ordered <> 'revoke'
    AND (workers.organizations = '[]' OR workers.organizations ? %(organization)s::text)
)
SELECT json_build_object(
    'heads', (SELECT coalesce(json_agg(json_build_array(heads.lane, heads.front, heads.line)), '[]') FROM heads),
    'policies', coalesce((
        SELECT json_agg(json_build_array(definitions.name, definitions.document) ORDER BY definitions.name)
        FROM perdure_definitions AS definitions
        WHERE definitions.organization = %(organization)s::text AND definitions.type = 'queue'
    ), '[]'),
    'counts', coalesce((
        SELECT json_agg(json_build_array(queue, state, tasks) ORDER BY queue, state)
        FROM (
            SELECT filled.queue, filled.state, sum(filled.tasks)::bigint AS tasks
            FROM filled
            GROUP BY filled.queue, filled.state
        ) AS counted
    ), '[]'),
    'oldest', coalesce((
        SELECT json_agg(json_build_array(queue, oldest_us) ORDER BY queue)
        FROM (
            SELECT heads.queue, min(heads.queued_us) AS oldest_us
            FROM heads
            WHERE heads.queued_us IS NOT NULL
            GROUP BY heads.queue
        ) AS waiting
    ), '[]'),
    'missing', coalesce((
        SELECT json_agg(json_build_array(queue, kind) ORDER BY queue, kind)
        FROM (
            SELECT DISTINCT filled.queue, filled.kind
            FROM filled
            WHERE filled.state = 'queued'
            AND NOT EXISTS (
                SELECT 1 FROM offers
                WHERE offers.kind = filled.kind AND (offers.queue IS NULL OR offers.queue = filled.queue)
            )
        ) AS unserved
    ), '[]')
)::text
