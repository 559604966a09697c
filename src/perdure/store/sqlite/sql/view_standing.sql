-- How a task stands, as far as a claim looks at it, and what stands before it; at most :shown names and :most others are told.
WITH task AS MATERIALIZED (
    SELECT
        tasks.n, tasks.organization, lanes.lane, lanes.queue, lanes.kind, lanes.capabilities, lanes.priority,
        coalesce(live.state, ends.state) AS state, live.seq, coalesce(live.waits, 0) AS waits, live.gate, live.turn,
        coalesce(live.due_us, ends.due_us) AS due_us, live.expires_us, live.deadline_us, live.worker,
        lanes.unroutable_since_us
    FROM perdure_tasks AS tasks
    CROSS JOIN perdure_lanes AS lanes ON lanes.lane = tasks.lane
    LEFT JOIN perdure_live AS live ON live.n = tasks.n
    LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
    WHERE tasks.organization = :organization AND tasks.id = :task
)
SELECT json_array(
    :now, state, organization, queue, kind, json(capabilities), priority, waits,
    json((
        SELECT json_group_array(parent.id) FROM (
            SELECT parents.id
            FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child
            CROSS JOIN perdure_live AS open ON open.n = edges.parent
            CROSS JOIN perdure_tasks AS parents ON parents.n = edges.parent
            WHERE edges.child = task.n AND task.waits > 0
            LIMIT :shown
        ) AS parent
    )),
    due_us, expires_us, deadline_us, worker, unroutable_since_us,
    json((
        SELECT json_array(
            gates.sort, gates.name, gates.key, gates.slots,
            (
                SELECT count(*) FROM perdure_slots AS slots
                WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > :now)
            ),
            gates.per_us,
            (SELECT min(slots.free_us) FROM perdure_slots AS slots WHERE slots.gate = gates.gate),
            (
                SELECT count(*) FROM (
                    SELECT 1 FROM perdure_live AS first INDEXED BY perdure_live_at_gate
                    WHERE first.gate = task.gate AND first.turn < task.turn
                    LIMIT :most
                )
            ),
            json((
                SELECT json_group_array(holder.id) FROM (
                    SELECT holders.id
                    FROM perdure_slots AS slots
                    CROSS JOIN perdure_tasks AS holders ON holders.n = slots.n
                    WHERE slots.gate = task.gate
                    ORDER BY slots.n
                    LIMIT :shown
                ) AS holder
            ))
        )
        FROM perdure_gates AS gates
        WHERE gates.gate = task.gate
    )),
    json((
        SELECT iif(count(*) > 0, 'true', 'false') FROM perdure_definitions AS definitions
        WHERE definitions.organization = task.organization AND type = 'queue' AND name = task.queue
        AND document ->> '$.paused'
    )),
    json((
        SELECT iif(count(*) > 0, 'true', 'false') FROM perdure_definitions AS definitions
        WHERE definitions.organization = task.organization AND type = 'organization' AND name = task.organization
        AND document ->> '$.paused'
    )),
    (
        SELECT count(*) FROM (
            SELECT 1 FROM perdure_live AS first INDEXED BY perdure_live_ready
            WHERE first.state = 'queued' AND first.lane = task.lane AND first.seq < task.seq
            LIMIT :most
        )
    ),
    json((
        SELECT json_group_array(json_array(other.organization, other.queue, other.kind, json(other.capabilities))) FROM (
            SELECT lanes.organization, lanes.queue, lanes.kind, lanes.capabilities
            FROM perdure_lanes AS lanes
            WHERE task.seq IS NOT NULL AND lanes.lane <> task.lane AND lanes.priority >= task.priority
            AND EXISTS (
                SELECT 1 FROM perdure_live AS first INDEXED BY perdure_live_ready
                WHERE first.state = 'queued' AND first.lane = lanes.lane
                AND (
                    lanes.priority > task.priority OR lanes.organization <> task.organization OR first.seq < task.seq
                )
            )
            LIMIT :most
        ) AS other
    ))
)
FROM task
