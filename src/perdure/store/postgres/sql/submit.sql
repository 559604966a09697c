-- Store new tasks: specifications, live rows and counts. Groups of the batch are [what its tasks share, [[own], ...]].
-- Of its own a task has [place, id, payload, state, due, parents, name, run at, key, request hash, options], where what is
-- usual may be left out at the end: queued, due now, no parents. Nothing is written while something has a depth that has not
-- been looked at (`admitted`). Tasks that exist already are left as they are. Answers whether it was free to write, which
-- places existed, and, where the tasks are to be `numbered`, the number of each new one.
WITH gate AS MATERIALIZED (
    SELECT %(admitted)s::boolean OR NOT EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE type IN ('queue', 'organization') AND document ->> 'depth' IS NOT NULL
    ) AS open
),
template AS MATERIALIZED (
    SELECT
        value -> 0 ->> 0 AS organization,
        (value -> 0 ->> 1)::bigint AS lane,
        (value -> 0 ->> 2)::bigint AS job,
        value -> 0 ->> 3 AS encoding,
        value -> 0 ->> 4 AS principal,
        value -> 0 ->> 5 AS initiator,
        (value -> 0 ->> 6)::bigint AS ttl_us,
        (value -> 0 ->> 7)::bigint AS execution_limit_us,
        (value -> 0 ->> 8)::bigint AS timeout_us,
        (value -> 0 ->> 9)::bigint AS lease_us,
        (value -> 0 ->> 10)::bigint AS max_attempts,
        (value -> 0 ->> 11)::bigint AS max_losses,
        value -> 0 ->> 12 AS on_loss,
        value -> 0 ->> 13 AS rule,
        value -> 0 ->> 14 AS if_failed,
        value -> 0 ->> 15 AS retry,
        value -> 1 AS own
    FROM jsonb_array_elements(%(batch)s::jsonb)
),
asked AS (
    SELECT
        template.organization, template.lane, template.job, template.encoding, template.principal, template.initiator,
        template.ttl_us, template.execution_limit_us, template.timeout_us, template.lease_us, template.max_attempts,
        template.max_losses, template.on_loss, template.rule, template.if_failed, template.retry,
        own.value AS self,
        (own.value ->> 0)::bigint AS place,
        coalesce(own.value ->> 3, 'queued') AS state,
        (
            SELECT 1 FROM perdure_tasks AS tasks
            WHERE tasks.organization = template.organization AND tasks.id = own.value ->> 1
        ) AS known
    FROM gate
    CROSS JOIN template
    CROSS JOIN LATERAL jsonb_array_elements(template.own) AS own (value)
    WHERE gate.open
    ORDER BY place
),
item AS MATERIALIZED (
    SELECT
        asked.*,
        CASE WHEN known IS NULL THEN nextval('perdure_tasks_n_seq') END AS n,
        CASE WHEN known IS NULL AND state = 'queued' THEN nextval('perdure_seq') END AS seq
    FROM asked
),
tasks AS (
    INSERT INTO perdure_tasks (
        n, organization, id, lane, job, name, payload, encoding, principal, initiator, created_us, run_at_us, ttl_us,
        execution_limit_us, timeout_us, lease_us, max_attempts, max_losses, on_loss, parents, rule, if_failed,
        idempotency_key, request_hash, retry, options
    )
    SELECT
        n, organization, self ->> 1, lane, job, self ->> 6,
        CASE encoding WHEN 'json' THEN convert_to(self ->> 2, 'UTF8') ELSE decode(self ->> 2, 'hex') END,
        encoding, principal, initiator, %(now)s::bigint, (self ->> 7)::bigint, ttl_us,
        execution_limit_us, timeout_us, lease_us, max_attempts, max_losses, on_loss,
        coalesce((self ->> 5)::bigint, 0), rule, if_failed, self ->> 8, self ->> 9, retry, (self ->> 10)::json
    FROM item
    WHERE known IS NULL
),
live AS (
    INSERT INTO perdure_live (n, organization, lane, job, waits, state, seq, due_us, expires_us, queued_us)
    SELECT
        n, organization, lane, job, coalesce((self ->> 5)::bigint, 0), state, seq,
        coalesce((self ->> 4)::bigint, %(now)s::bigint), %(now)s::bigint + ttl_us,
        CASE state WHEN 'queued' THEN %(now)s::bigint END
    FROM item
    WHERE known IS NULL
),
counted AS (
    INSERT INTO perdure_count_changes (lane, state, change)
    SELECT lane, state, count(*) FROM item WHERE known IS NULL GROUP BY lane, state
)
SELECT
    (SELECT open FROM gate),
    (SELECT array_agg(place) FROM item WHERE known IS NOT NULL),
    CASE WHEN %(numbered)s::boolean THEN (SELECT array_agg(n ORDER BY place) FROM item WHERE known IS NULL) END
