-- Write the specifications of new tasks.
INSERT INTO tasks (
    n, organization, id, lane, job, name, payload, encoding, principal, initiator, created_us, run_at_us, ttl_us,
    execution_limit_us, timeout_us, lease_us, max_attempts, max_losses, on_loss, parents, rule, if_failed,
    idempotency_key, request_hash, retry, options
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    CASE value ->> 7 WHEN 'json' THEN CAST(value ->> 6 AS BLOB) ELSE unhex(value ->> 6) END,
    value ->> 7, value ->> 8, value ->> 9, :now, value ->> 10, value ->> 11,
    value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16, value ->> 17, value ->> 18, value ->> 19,
    value ->> 20, value ->> 21, value ->> 22, value ->> 23, value ->> 24
FROM json_each(:batch)
