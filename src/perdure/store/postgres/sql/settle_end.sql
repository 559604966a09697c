-- End the tasks whose attempt is live, whose guard holds, and which this settlement, a receipt or a cancel ends. Groups of
-- the batch are [what its settlements share, [[own], ...]]. Rows are removed in ascending order of task; each is its own lock.
-- Their kind's breaker comes along where it has one. A receipt is the result, also while cancelling; else whatever was sent, a
-- task that is being cancelled ends cancelled.
-- Where that is asked for and none of the tasks is of a job, their slots are taken back too, as by slot_free, and with the first of
-- them come the gates at which tasks may wait. Those are locked last: after rows of tasks, and where counters of jobs are not.
WITH template AS MATERIALIZED (
    SELECT
        value -> 0 ->> 0 AS guard,
        value -> 0 ->> 1 AS state,
        (value -> 0 ->> 2)::boolean AS ended,
        value -> 0 ->> 3 AS attempt_state,
        value -> 0 ->> 4 AS reason,
        value -> 0 ->> 5 AS charge,
        value -> 0 ->> 8 AS encoding,
        value -> 0 ->> 9 AS organization,
        CASE value -> 0 ->> 8
            WHEN 'json' THEN convert_to(value -> 0 ->> 10, 'UTF8') ELSE decode(value -> 0 ->> 10, 'hex')
        END AS result,
        value -> 0 ->> 11 AS error,
        value -> 0 ->> 12 AS summary,
        value -> 0 ->> 13 AS event,
        value -> 1 AS own
    FROM jsonb_array_elements(%(batch)s::jsonb)
),
item AS MATERIALIZED (
    SELECT
        tasks.n, tasks.timeout_us, template.guard, template.state, template.ended, template.attempt_state,
        template.reason, template.charge, template.encoding, template.result, template.error, template.summary,
        template.event, (own.value ->> 0)::bigint AS place, own.value ->> 2 AS attempt_id, own.value ->> 3 AS token,
        own.value ->> 4 AS digest, (own.value ->> 5)::bigint AS ran_us, (own.value ->> 6)::bigint AS told_us
    FROM template
    CROSS JOIN LATERAL jsonb_array_elements(template.own) AS own (value)
    CROSS JOIN LATERAL (
        SELECT tasks.n, tasks.timeout_us
        FROM perdure_tasks AS tasks
        WHERE tasks.organization = template.organization AND tasks.id = own.value ->> 1
        LIMIT 1
    ) AS tasks
    ORDER BY tasks.n
),
-- Nearly always all are of one worker, which is looked at once, ...
first AS MATERIALIZED (
    SELECT workers.id AS worker, workers.ordered, workers.build
    FROM perdure_workers AS workers
    WHERE workers.id = (SELECT live.worker FROM perdure_live AS live WHERE live.n = (SELECT min(n) FROM item))
),
-- ... and have no receipts; then none is looked for.
proof AS MATERIALIZED (
    SELECT EXISTS (
        SELECT 1 FROM perdure_receipts AS receipts
        WHERE receipts.n BETWEEN (SELECT min(n) FROM item) AND (SELECT max(n) FROM item)
    ) AS known
),
ending AS (
    DELETE FROM perdure_live AS live
    USING item
    LEFT JOIN perdure_receipts AS receipts
        ON receipts.n = CASE WHEN (SELECT known FROM proof) THEN item.n END AND receipts.attempt_id = item.attempt_id
    WHERE live.n = ANY (ARRAY[item.n]) AND coalesce(live.attempt_id, '') = item.attempt_id
    AND CASE item.guard
        WHEN 'holder' THEN
            live.token = item.token AND live.lease_ends_us > %(now)s::bigint
            AND CASE live.worker
                WHEN (SELECT worker FROM first) THEN (SELECT ordered FROM first)
                ELSE (SELECT workers.ordered FROM perdure_workers AS workers WHERE workers.id = live.worker)
            END IS DISTINCT FROM 'revoke'
        WHEN 'lease_over' THEN
            live.lease_ends_us <= %(now)s::bigint AND (live.state = 'cancelling' OR (
                SELECT value::bigint <= %(now)s::bigint OR value::bigint > %(now)s::bigint + %(suspension_max)s::bigint
                FROM perdure_meta AS meta WHERE key = 'losses_suspended_until_us'
            ))
        WHEN 'deadline_over' THEN live.deadline_us <= %(now)s::bigint
        WHEN 'timeout_over' THEN
            live.state <> 'cancelling'
            AND live.started_us + item.timeout_us + %(timeout_grace)s::bigint <= %(now)s::bigint
        WHEN 'cancel_over' THEN live.state = 'cancelling' AND live.cancel_ends_us <= %(now)s::bigint
        WHEN 'worker_revoked' THEN
            (SELECT workers.ordered FROM perdure_workers AS workers WHERE workers.id = live.worker) = 'revoke'
    END
    AND (live.state = 'cancelling' OR (
        live.state IN ('leased', 'running')
        AND (item.ended OR receipts.n IS NOT NULL)
        AND item.event NOT IN ('acknowledge', 'cancel_deadline')
        AND (item.event <> 'expire' OR live.state = 'leased')
    ))
    RETURNING
        live.n, live.organization, live.lane, live.job, live.state, live.generation, live.failures, live.losses, live.fence,
        live.attempt_id, live.due_us, live.expires_us, live.deadline_us, live.last_error, live.worker, live.queued_us,
        live.leased_us, live.gated, live.cancel_us, live.cancel_actor, live.cancel_reason, live.cancel_text, live.cancel_note,
        item.place, item.digest,
        receipts.n IS NOT NULL AS proven,
        coalesce(live.started_us, CASE WHEN item.ran_us IS NOT NULL THEN
            greatest(live.leased_us, least(%(now)s::bigint, %(now)s::bigint - item.ran_us))
        END) AS started_us,
        coalesce(live.cancel_delivered_us, CASE WHEN live.state = 'cancelling' AND item.told_us IS NOT NULL THEN
            least(%(now)s::bigint, greatest(live.cancel_us, %(now)s::bigint - item.told_us))
        END) AS cancel_delivered_us,
        CASE
            WHEN receipts.partly THEN 'partially_succeeded'
            WHEN receipts.n IS NOT NULL THEN 'succeeded'
            WHEN live.state = 'cancelling' THEN 'cancelled'
            ELSE item.state
        END AS end_state,
        CASE
            WHEN receipts.partly THEN 'items_failed'
            WHEN receipts.n IS NOT NULL THEN 'ok'
            WHEN live.state = 'cancelling' THEN live.cancel_reason
            ELSE item.reason
        END AS reason,
        CASE
            WHEN receipts.n IS NOT NULL THEN 'succeeded'
            WHEN live.state = 'cancelling' THEN 'cancelled'
            ELSE item.attempt_state
        END AS attempt_state,
        CASE WHEN item.guard = 'holder' THEN live.worker ELSE 'system' END AS actor,
        CASE WHEN receipts.n IS NULL AND (live.state <> 'cancelling' OR item.event = 'acknowledge') THEN item.error END
            AS error,
        CASE WHEN receipts.n IS NULL AND live.state <> 'cancelling' THEN item.charge END AS charge,
        CASE WHEN receipts.n IS NOT NULL THEN receipts.result WHEN live.state <> 'cancelling' THEN item.result END AS result,
        CASE WHEN receipts.n IS NOT NULL THEN receipts.encoding WHEN live.state <> 'cancelling' THEN item.encoding END
            AS encoding,
        CASE WHEN receipts.n IS NOT NULL THEN receipts.summary WHEN live.state <> 'cancelling' THEN item.summary END
            AS summary
),
attempts AS (
    INSERT INTO perdure_attempts (
        n, fence, id, generation, number, worker, build, state, reason, task_state, actor,
        queued_us, leased_us, started_us, ended_us, error, digest
    )
    SELECT
        n, fence, attempt_id, generation, failures + 1, worker,
        CASE worker
            WHEN (SELECT first.worker FROM first) THEN (SELECT first.build FROM first)
            ELSE (SELECT workers.build FROM perdure_workers AS workers WHERE workers.id = ending.worker)
        END,
        attempt_state, reason, end_state, actor, queued_us, leased_us, started_us, greatest(%(now)s::bigint, leased_us), error,
        digest
    FROM ending
),
ends AS (
    INSERT INTO perdure_ends (
        n, organization, lane, job, state, reason, actor, finished_us, generation, failures, losses, fence, attempt_id,
        due_us, expires_us, deadline_us, result, result_encoding, error, summary,
        cancel_us, cancel_actor, cancel_reason, cancel_text, cancel_note, cancel_delivered_us
    )
    SELECT
        n, organization, lane, job, end_state, reason, actor, greatest(%(now)s::bigint, leased_us), generation,
        failures + CASE WHEN charge IN ('attempt', 'loss_and_attempt') THEN 1 ELSE 0 END,
        losses + CASE WHEN charge IN ('loss', 'loss_and_attempt') THEN 1 ELSE 0 END,
        fence, attempt_id, due_us, expires_us, deadline_us, result, encoding,
        CASE WHEN end_state NOT IN ('succeeded', 'partially_succeeded') THEN coalesce(error, last_error) END,
        summary, cancel_us, cancel_actor, cancel_reason, cancel_text, cancel_note, cancel_delivered_us
    FROM ending
),
counted AS (
    INSERT INTO perdure_count_changes (lane, state, change)
    SELECT moves.lane, change.state, change.count
    FROM (SELECT lane, state, end_state, count(*) AS moved FROM ending GROUP BY lane, state, end_state) AS moves
    CROSS JOIN LATERAL (
        VALUES (moves.state, -moves.moved), (moves.end_state, moves.moved), ('attempts', moves.moved)
    ) AS change (state, count)
),
freed AS (
    DELETE FROM perdure_slots AS slots
    WHERE slots.n = ANY ((
        SELECT CASE WHEN %(frees)s::boolean AND count(job) = 0 THEN array_agg(n) FILTER (WHERE gated = 1) END FROM ending
    )::bigint[]) AND slots.free_us IS NULL
    RETURNING slots.gate
),
kept AS MATERIALIZED (
    SELECT locked.gate, locked.waited
    FROM (
        SELECT known.gate
        FROM (SELECT DISTINCT gate FROM freed) AS gone
        CROSS JOIN LATERAL (
            SELECT gates.gate, gates.organization, gates.sort, gates.name, gates.key
            FROM perdure_gates AS gates WHERE gates.gate = gone.gate LIMIT 1
        ) AS known
        ORDER BY known.organization, known.sort, known.name NULLS LAST, known.key
    ) AS named
    CROSS JOIN LATERAL (
        SELECT gates.gate, gates.waited FROM perdure_gates AS gates
        WHERE gates.gate = named.gate LIMIT 1 FOR NO KEY UPDATE OF gates
    ) AS locked
)
SELECT
    place, end_state, n, job, proven, gated,
    CASE WHEN EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE definitions.type = 'kind' AND definitions.document ->> 'breaker' IS NOT NULL
    ) THEN (
        SELECT jsonb_build_array(lanes.organization, lanes.kind, ending.leased_us, definitions.document ->> 'breaker')::text
        FROM perdure_lanes AS lanes
        JOIN perdure_definitions AS definitions
            ON definitions.organization = lanes.organization AND definitions.type = 'kind' AND definitions.name = lanes.kind
        WHERE lanes.lane = ending.lane AND definitions.document ->> 'breaker' IS NOT NULL
    ) END,
    CASE WHEN gated = 1 AND place = (SELECT min(gates.place) FROM ending AS gates WHERE gates.gated = 1)
        THEN (SELECT jsonb_agg(kept.gate)::text FROM kept WHERE kept.waited) END
FROM ending
