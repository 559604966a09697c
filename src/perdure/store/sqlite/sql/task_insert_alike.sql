-- Write the specifications of new tasks that differ in number, id and payload only, and have no job. The row of VALUES is
-- repeated for each of them.
INSERT INTO perdure_tasks (
    n, id, payload,
    created_us, lane, organization, encoding, principal, initiator, ttl_us, execution_limit_us, timeout_us,
    lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
)
SELECT
    column1, column2, column3,
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
FROM (VALUES (?, ?, ?))
