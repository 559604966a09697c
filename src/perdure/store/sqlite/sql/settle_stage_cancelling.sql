-- Stage the settlements of tasks that are being cancelled: whatever was sent, they end cancelled, or by their receipt.
WITH template AS MATERIALIZED (
    SELECT
        key AS place, value ->> 0 AS guard, value ->> 9 AS organization,
        iif(value ->> 13 = 'acknowledge', value ->> 11, NULL) AS error
    FROM json_each(:templates)
)
INSERT OR IGNORE INTO settling (
    n, i, lane, job, from_state, state, ended, attempt_state, reason, charge, delay_us, clears_ttl,
    result, result_encoding, error, summary, digest, actor, ran_us, told_us, gated, leased_us
)
SELECT
    live.n, item.key, live.lane, live.job, live.state,
    iif(receipts.n IS NULL, 'cancelled', iif(receipts.partly, 'partially_succeeded', 'succeeded')),
    1,
    iif(receipts.n IS NULL, 'cancelled', 'succeeded'),
    iif(receipts.n IS NULL, live.cancel_reason, iif(receipts.partly, 'items_failed', 'ok')),
    'nothing', 0, 0, receipts.result, receipts.encoding, iif(receipts.n IS NULL, template.error, NULL), receipts.summary, item.value ->> 4,
    iif(template.guard = 'holder', live.worker, 'system'),
    item.value ->> 5, item.value ->> 6, live.gated, live.leased_us
FROM json_each(:batch) AS item
CROSS JOIN template ON template.place = item.value ->> 3
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = template.organization AND tasks.id = item.value ->> 0
CROSS JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_receipts AS receipts ON receipts.n = live.n AND receipts.attempt_id = live.attempt_id
WHERE live.attempt_id = item.value ->> 1
AND live.state = 'cancelling'
AND CASE template.guard
    WHEN 'holder' THEN
        live.token = item.value ->> 2 AND live.lease_ends_us > :now
        AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
    WHEN 'lease_over' THEN live.lease_ends_us <= :now
    WHEN 'deadline_over' THEN live.deadline_us <= :now
    WHEN 'cancel_over' THEN live.cancel_ends_us <= :now
    WHEN 'worker_revoked' THEN
        EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
END
