-- Write the specification of one new task that has nothing rare. The order of the columns is that of its values.
INSERT INTO perdure_tasks (
    n, id, payload, created_us, lane,
    organization, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us,
    lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
