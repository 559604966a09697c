-- Write the specification of one new task that has nothing rare but a key. The order of the columns is that of its values.
INSERT INTO perdure_tasks (
    n, id, payload, created_us, lane, idempotency_key, request_hash,
    organization, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us,
    lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
