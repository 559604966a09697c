-- Write the specifications of new tasks that have nothing of their own but number, id and payload. The row of VALUES is
-- repeated for each of them.
INSERT INTO perdure_tasks (
    n, id, payload,
    created_us, lane, job, organization, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us,
    lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
)
SELECT
    column1, column2, CASE ?5 WHEN 'json' THEN CAST(column3 AS BLOB) ELSE unhex(column3) END,
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
FROM (VALUES (?, ?, ?))
