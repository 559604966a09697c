-- Write the specifications of new tasks: what each has of its own, and what it shares with others of its template.
WITH template AS MATERIALIZED (
    SELECT
        key AS place,
        value ->> 0 AS organization,
        value ->> 1 AS lane,
        value ->> 2 AS job,
        value ->> 3 AS encoding,
        value ->> 4 AS principal,
        value ->> 5 AS initiator,
        value ->> 6 AS ttl_us,
        value ->> 7 AS execution_limit_us,
        value ->> 8 AS timeout_us,
        value ->> 9 AS lease_us,
        value ->> 10 AS max_attempts,
        value ->> 11 AS max_losses,
        value ->> 12 AS on_loss,
        value ->> 13 AS rule,
        value ->> 14 AS if_failed,
        value ->> 15 AS retry,
        value ->> 16 AS options
    FROM json_each(:templates)
)
INSERT INTO tasks (
    n, id, payload, parents, name, run_at_us, idempotency_key, request_hash, created_us,
    organization, lane, job, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us, lease_us,
    max_attempts, max_losses, on_loss, rule, if_failed, retry, options
)
SELECT
    :first + task.key,
    task.value ->> 0,
    CASE template.encoding WHEN 'json' THEN CAST(task.value ->> 1 AS BLOB) ELSE unhex(task.value ->> 1) END,
    task.value ->> 6,
    task.value ->> 7,
    task.value ->> 8,
    task.value ->> 9,
    task.value ->> 10,
    :now,
    template.organization, template.lane, template.job, template.encoding, template.principal, template.initiator,
    template.ttl_us, template.execution_limit_us, template.timeout_us, template.lease_us,
    template.max_attempts, template.max_losses, template.on_loss, template.rule, template.if_failed, template.retry,
    template.options
FROM json_each(:batch) AS task
CROSS JOIN template ON template.place = task.value ->> 2
