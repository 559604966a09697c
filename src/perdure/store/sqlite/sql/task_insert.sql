-- Write the specifications of new tasks that share everything but what is their own.
INSERT INTO perdure_tasks (
    n, id, payload, parents, name, run_at_us, idempotency_key, request_hash, options, created_us,
    organization, lane, job, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us, lease_us,
    max_attempts, max_losses, on_loss, rule, if_failed, retry
)
SELECT
    :first + (value ->> 0),
    value ->> 1,
    CASE :encoding WHEN 'json' THEN CAST(value ->> 2 AS BLOB) ELSE unhex(value ->> 2) END,
    value ->> 6,
    value ->> 7,
    value ->> 8,
    value ->> 9,
    value ->> 10,
    value ->> 11,
    :now,
    :organization, :lane, :job, :encoding, :principal, :initiator, :ttl_us, :execution_limit_us, :timeout_us, :lease_us,
    :max_attempts, :max_losses, :on_loss, :rule, :if_failed, :retry
FROM json_each(:batch)
