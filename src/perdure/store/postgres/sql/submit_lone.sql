-- Store one new task as `submit_one` does, without a transaction around it: it commits by itself. Nothing is written either if
-- nobody would wait for the disk, or where the server's time is not between `earliest` and `latest`. Answers whether it was,
-- and the server's time.
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us
),
gate AS MATERIALIZED (
    SELECT NOT EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE type IN ('queue', 'organization') AND document ->> 'depth' IS NOT NULL
    )
    AND clock.us BETWEEN %(earliest)s::bigint AND %(latest)s::bigint
    AND current_setting('synchronous_commit') <> 'off' AS open
    FROM clock
),
made AS MATERIALIZED (
    SELECT nextval('perdure_tasks_n_seq') AS n, nextval('perdure_seq') AS seq
    FROM gate
    WHERE gate.open AND NOT EXISTS (
        SELECT 1 FROM perdure_tasks AS tasks
        WHERE tasks.organization = %(organization)s::text AND tasks.id = %(id)s::text
    )
),
tasks AS (
    INSERT INTO perdure_tasks (
        n, organization, id, lane, payload, encoding, principal, initiator, created_us, ttl_us,
        execution_limit_us, timeout_us, lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
    )
    SELECT
        n, %(organization)s::text, %(id)s::text, %(lane)s::bigint, %(payload)s::bytea, %(encoding)s::text,
        %(principal)s::text, %(initiator)s::text, %(now)s::bigint, %(ttl_us)s::bigint, %(execution_limit_us)s::bigint,
        %(timeout_us)s::bigint, %(lease_us)s::bigint, %(max_attempts)s::bigint, %(max_losses)s::bigint, %(on_loss)s::text,
        %(trigger)s::text, %(if_failed)s::text, %(retry)s::text
    FROM made
),
live AS (
    INSERT INTO perdure_live (n, organization, lane, state, seq, due_us, expires_us, queued_us)
    SELECT
        n, %(organization)s::text, %(lane)s::bigint, 'queued', seq, %(now)s::bigint,
        %(now)s::bigint + %(ttl_us)s::bigint, %(now)s::bigint
    FROM made
),
counted AS (
    INSERT INTO perdure_count_changes (lane, state, change) SELECT %(lane)s::bigint, 'queued', 1 FROM made
)
SELECT EXISTS (SELECT 1 FROM made), us FROM clock
