-- Write the specifications of new tasks that share everything but what is their own: number, id, payload and what is
-- rare. The row of VALUES is repeated for each of them.
INSERT INTO perdure_tasks (
    n, id, payload, parents, name, run_at_us, idempotency_key, request_hash, options,
    created_us, lane, job, organization, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us,
    lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
)
SELECT
    column1, column2, CASE ?5 WHEN 'json' THEN CAST(column3 AS BLOB) ELSE unhex(column3) END,
    column4, column5, column6, column7, column8, column9,
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?))
