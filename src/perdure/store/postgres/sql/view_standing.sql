-- How a task stands, as far as a claim looks at it, and what stands before it; at most %(shown)s names and %(most)s others are
-- told.
WITH task AS MATERIALIZED (
    SELECT
        tasks.n, tasks.organization, lanes.lane, lanes.queue, lanes.kind, lanes.capabilities, lanes.priority,
        coalesce(live.state, ends.state) AS state, live.seq, coalesce(live.waits, 0) AS waits, live.gate, live.turn,
        coalesce(live.due_us, ends.due_us) AS due_us, live.expires_us, live.deadline_us, live.worker,
        lanes.unroutable_since_us
    FROM perdure_tasks AS tasks
    JOIN perdure_lanes AS lanes ON lanes.lane = ANY (ARRAY[tasks.lane])
    LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n])
    LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[tasks.n])
    WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
)
SELECT jsonb_build_array(
    %(now)s::bigint, state, organization, queue, kind, capabilities, priority, waits,
    (
        SELECT coalesce(jsonb_agg(parent.id), '[]') FROM (
            SELECT parents.id
            FROM perdure_edges AS edges
            JOIN perdure_live AS open ON open.n = ANY (ARRAY[edges.parent])
            JOIN perdure_tasks AS parents ON parents.n = ANY (ARRAY[edges.parent])
            WHERE edges.child = task.n AND task.waits > 0
            LIMIT %(shown)s::bigint
        ) AS parent
    ),
    due_us, expires_us, deadline_us, worker, unroutable_since_us,
    (
        SELECT jsonb_build_array(
            gates.sort, gates.name, gates.key, gates.slots,
            (
                SELECT count(*) FROM perdure_slots AS slots
                WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > %(now)s::bigint)
            ),
            gates.per_us,
            (SELECT min(slots.free_us) FROM perdure_slots AS slots WHERE slots.gate = gates.gate),
            (
                SELECT count(*) FROM (
                    SELECT 1 FROM perdure_live AS first
                    WHERE first.gate = task.gate AND first.turn < task.turn
                    LIMIT %(most)s::bigint
                ) AS counted
            ),
            (
                SELECT coalesce(jsonb_agg(holder.id), '[]') FROM (
                    SELECT holders.id
                    FROM perdure_slots AS slots
                    JOIN perdure_tasks AS holders ON holders.n = ANY (ARRAY[slots.n])
                    WHERE slots.gate = task.gate
                    ORDER BY slots.n
                    LIMIT %(shown)s::bigint
                ) AS holder
            )
        )
        FROM perdure_gates AS gates
        WHERE gates.gate = task.gate
    ),
    EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE definitions.organization = task.organization AND type = 'queue' AND name = task.queue
        AND document ->> 'paused' = 'true'
    ),
    EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE definitions.organization = task.organization AND type = 'organization' AND name = task.organization
        AND document ->> 'paused' = 'true'
    ),
    (
        SELECT count(*) FROM (
            SELECT 1 FROM perdure_live AS first
            WHERE first.state = 'queued' AND first.lane = task.lane AND first.seq < task.seq
            LIMIT %(most)s::bigint
        ) AS counted
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(
            other.organization, other.queue, other.kind, other.capabilities
        )), '[]') FROM (
            SELECT lanes.organization, lanes.queue, lanes.kind, lanes.capabilities
            FROM perdure_lanes AS lanes
            CROSS JOIN LATERAL (
                SELECT first.seq FROM perdure_live AS first
                WHERE first.state = 'queued' AND first.lane = lanes.lane
                ORDER BY first.seq
                LIMIT 1
            ) AS head
            WHERE task.seq IS NOT NULL AND lanes.lane <> task.lane AND lanes.priority >= task.priority
            AND (lanes.priority > task.priority OR lanes.organization <> task.organization OR head.seq < task.seq)
            LIMIT %(most)s::bigint
        ) AS other
    )
)::text
FROM task
