-- Put tasks back among those that wait whose attempt is live, whose guard holds, and which neither this settlement nor a
-- receipt nor a cancel ends. Groups of the batch are [what its settlements share, [[own], ...]]. Rows are locked in
-- ascending order of task. Their kind's breaker comes along where it has one.
WITH template AS MATERIALIZED (
    SELECT
        value -> 0 ->> 0 AS guard,
        value -> 0 ->> 1 AS state,
        value -> 0 ->> 3 AS attempt_state,
        value -> 0 ->> 4 AS reason,
        value -> 0 ->> 5 AS charge,
        (value -> 0 ->> 6)::bigint AS delay_us,
        (value -> 0 ->> 7)::boolean AS clears_ttl,
        value -> 0 ->> 9 AS organization,
        value -> 0 ->> 11 AS error,
        value -> 0 ->> 13 AS event,
        value -> 1 AS own
    FROM jsonb_array_elements(%(batch)s::jsonb)
    WHERE NOT (value -> 0 ->> 2)::boolean
),
item AS MATERIALIZED (
    SELECT
        tasks.n, tasks.timeout_us, template.guard, template.state AS to_state, template.attempt_state, template.reason,
        template.charge, template.delay_us, template.clears_ttl, template.error, template.event,
        (own.value ->> 0)::bigint AS place, own.value ->> 2 AS sent_id, own.value ->> 3 AS sent_token,
        own.value ->> 4 AS digest, (own.value ->> 5)::bigint AS ran_us
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
locked AS MATERIALIZED (
    SELECT
        live.n, live.lane, live.state, live.fence, live.attempt_id, live.generation, live.failures, live.worker,
        live.queued_us, live.leased_us, live.started_us, live.gated, item.place, item.guard, item.to_state, item.attempt_state,
        item.reason, item.charge, item.delay_us, item.clears_ttl, item.error, item.digest, item.ran_us
    FROM item
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[item.n])
    WHERE coalesce(live.attempt_id, '') = item.sent_id
    AND live.state IN ('leased', 'running')
    AND (
        SELECT count(*) FROM perdure_receipts AS receipts
        WHERE receipts.n = live.n AND receipts.attempt_id = live.attempt_id
    ) = 0
    AND CASE item.guard
        WHEN 'holder' THEN
            live.token = item.sent_token AND live.lease_ends_us > %(now)s::bigint
            AND (SELECT workers.ordered FROM perdure_workers AS workers WHERE workers.id = live.worker) IS DISTINCT FROM 'revoke'
        WHEN 'lease_over' THEN
            live.lease_ends_us <= %(now)s::bigint AND (
                SELECT value::bigint <= %(now)s::bigint OR value::bigint > %(now)s::bigint + %(suspension_max)s::bigint
                FROM perdure_meta AS meta WHERE key = 'losses_suspended_until_us'
            )
        WHEN 'deadline_over' THEN live.deadline_us <= %(now)s::bigint
        WHEN 'timeout_over' THEN live.started_us + item.timeout_us + %(timeout_grace)s::bigint <= %(now)s::bigint
        WHEN 'worker_revoked' THEN
            (SELECT workers.ordered FROM perdure_workers AS workers WHERE workers.id = live.worker) = 'revoke'
    END
    ORDER BY item.n
    FOR UPDATE OF live
),
placed AS MATERIALIZED (
    SELECT ready.*, CASE WHEN ready.to_state = 'queued' THEN nextval('perdure_front') END AS seq
    FROM (SELECT DISTINCT ON (n) * FROM locked ORDER BY n, place) AS ready
),
attempts AS (
    INSERT INTO perdure_attempts (
        n, fence, id, generation, number, worker, build, state, reason, task_state, actor,
        queued_us, leased_us, started_us, ended_us, due_us, error, digest
    )
    SELECT
        n, fence, attempt_id, generation, failures + 1, worker,
        (SELECT workers.build FROM perdure_workers AS workers WHERE workers.id = placed.worker),
        attempt_state, reason, to_state, CASE WHEN guard = 'holder' THEN worker ELSE 'system' END, queued_us, leased_us,
        coalesce(started_us, CASE WHEN ran_us IS NOT NULL THEN
            greatest(leased_us, least(%(now)s::bigint, %(now)s::bigint - ran_us))
        END),
        greatest(%(now)s::bigint, leased_us), CASE WHEN to_state IN ('retrying', 'pending') THEN %(now)s::bigint + delay_us END, error,
        digest
    FROM placed
),
returned AS (
    UPDATE perdure_live AS live
    SET state = placed.to_state,
        seq = placed.seq,
        queued_us = CASE WHEN placed.to_state = 'queued' THEN %(now)s::bigint END,
        due_us = %(now)s::bigint + placed.delay_us,
        expires_us = CASE WHEN placed.clears_ttl THEN NULL ELSE live.expires_us END,
        failures = live.failures + (placed.charge IN ('attempt', 'loss_and_attempt'))::integer,
        losses = live.losses + (placed.charge IN ('loss', 'loss_and_attempt'))::integer,
        snoozes = live.snoozes + (placed.charge = 'snooze')::integer,
        hand_backs = live.hand_backs + (placed.charge = 'hand_back')::integer,
        last_error = coalesce(placed.error, live.last_error),
        attempt_id = NULL,
        token = NULL,
        worker = NULL,
        leased_us = NULL,
        started_us = NULL,
        lease_ends_us = NULL
    FROM placed
    WHERE live.n = ANY (ARRAY[placed.n]) AND live.fence = placed.fence AND live.state IN ('leased', 'running')
),
counted AS (
    INSERT INTO perdure_count_changes (lane, state, change)
    SELECT lane, state, -count(*) FROM placed GROUP BY lane, state
    UNION ALL
    SELECT lane, to_state, count(*) FROM placed GROUP BY lane, to_state
    UNION ALL
    SELECT lane, 'attempts', count(*) FROM placed GROUP BY lane
)
SELECT
    place, to_state, n, NULL::bigint, false, gated,
    CASE WHEN EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE definitions.type = 'kind' AND definitions.document ->> 'breaker' IS NOT NULL
    ) THEN (
        SELECT jsonb_build_array(lanes.organization, lanes.kind, placed.leased_us, definitions.document ->> 'breaker')::text
        FROM perdure_lanes AS lanes
        JOIN perdure_definitions AS definitions
            ON definitions.organization = lanes.organization AND definitions.type = 'kind' AND definitions.name = lanes.kind
        WHERE lanes.lane = placed.lane AND definitions.document ->> 'breaker' IS NOT NULL
    ) END
FROM placed
