-- Stage the settlements whose attempt is live, whose guard holds and whose task nobody cancels. A receipt is the result.
INSERT OR IGNORE INTO settling (
    n, i, lane, job, from_state, state, ended, attempt_state, reason, charge, delay_us, clears_ttl,
    result, result_encoding, error, summary, digest, actor
)
SELECT
    live.n, item.key, live.lane, live.job, live.state,
    iif(receipts.n IS NULL, item.value ->> 6, iif(receipts.partly, 'partially_succeeded', 'succeeded')),
    iif(receipts.n IS NULL, item.value ->> 7, 1),
    iif(receipts.n IS NULL, item.value ->> 8, 'succeeded'),
    iif(receipts.n IS NULL, item.value ->> 9, iif(receipts.partly, 'items_failed', 'ok')),
    iif(receipts.n IS NULL, item.value ->> 10, 'nothing'),
    item.value ->> 11,
    item.value ->> 12,
    CASE
        WHEN receipts.n IS NOT NULL THEN receipts.result
        WHEN item.value ->> 14 = 'json' THEN CAST(item.value ->> 13 AS BLOB)
        ELSE unhex(item.value ->> 13)
    END,
    iif(receipts.n IS NULL, item.value ->> 14, receipts.encoding),
    iif(receipts.n IS NULL, item.value ->> 15, NULL),
    iif(receipts.n IS NULL, item.value ->> 16, receipts.summary),
    item.value ->> 17,
    iif(item.value ->> 4 = 'holder', live.worker, 'system')
FROM json_each(:batch) AS item
CROSS JOIN tasks ON tasks.organization = item.value ->> 0 AND tasks.id = item.value ->> 1
CROSS JOIN live ON live.n = tasks.n
LEFT JOIN receipts ON receipts.n = live.n AND receipts.attempt_id = live.attempt_id
WHERE live.attempt_id = item.value ->> 2
AND live.state IN ('leased', 'running')
AND CASE item.value ->> 4
    WHEN 'holder' THEN
        live.token = item.value ->> 3 AND live.lease_ends_us > :now
        AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
    WHEN 'lease_over' THEN
        live.lease_ends_us <= :now
        AND :now >= (SELECT value FROM meta WHERE key = 'losses_suspended_until_us')
    WHEN 'deadline_over' THEN live.deadline_us <= :now
    WHEN 'timeout_over' THEN live.started_us + tasks.timeout_us + :timeout_grace <= :now
    WHEN 'worker_revoked' THEN
        EXISTS (SELECT 1 FROM workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
END
