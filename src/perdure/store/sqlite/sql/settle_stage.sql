-- Stage the settlements whose attempt is live, whose guard holds and whose task nobody cancels. A receipt is the result.
WITH template AS MATERIALIZED (
    SELECT
        key AS place,
        value ->> 0 AS guard,
        value ->> 1 AS state,
        value ->> 2 AS ended,
        value ->> 3 AS attempt_state,
        value ->> 4 AS reason,
        value ->> 5 AS charge,
        value ->> 6 AS delay_us,
        value ->> 7 AS clears_ttl,
        value ->> 8 AS encoding,
        value ->> 9 AS organization,
        value ->> 10 AS result,
        value ->> 11 AS error,
        value ->> 12 AS summary,
        value ->> 13 AS event
    FROM json_each(:templates)
)
INSERT OR IGNORE INTO settling (
    n, i, lane, job, from_state, state, ended, attempt_state, reason, charge, delay_us, clears_ttl,
    result, result_encoding, error, summary, digest, actor, ran_us, told_us, gated, leased_us
)
SELECT
    live.n, item.key, live.lane, live.job, live.state,
    iif(receipts.n IS NULL, template.state, iif(receipts.partly, 'partially_succeeded', 'succeeded')),
    iif(receipts.n IS NULL, template.ended, 1),
    iif(receipts.n IS NULL, template.attempt_state, 'succeeded'),
    iif(receipts.n IS NULL, template.reason, iif(receipts.partly, 'items_failed', 'ok')),
    iif(receipts.n IS NULL, template.charge, 'nothing'),
    template.delay_us,
    template.clears_ttl,
    CASE
        WHEN receipts.n IS NOT NULL THEN receipts.result
        WHEN template.encoding = 'json' THEN CAST(template.result AS BLOB)
        ELSE unhex(template.result)
    END,
    iif(receipts.n IS NULL, template.encoding, receipts.encoding),
    iif(receipts.n IS NULL, template.error, NULL),
    iif(receipts.n IS NULL, template.summary, receipts.summary),
    item.value ->> 4,
    iif(template.guard = 'holder', live.worker, 'system'),
    item.value ->> 5, NULL, live.gated, live.leased_us
FROM json_each(:batch) AS item
CROSS JOIN template ON template.place = item.value ->> 3
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = template.organization AND tasks.id = item.value ->> 0
CROSS JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_receipts AS receipts ON receipts.n = live.n AND receipts.attempt_id = live.attempt_id
WHERE live.attempt_id = item.value ->> 1
AND live.state IN ('leased', 'running')
AND template.event NOT IN ('acknowledge', 'cancel_deadline')
AND (template.event <> 'expire' OR live.state = 'leased')
AND CASE template.guard
    WHEN 'holder' THEN
        live.token = item.value ->> 2 AND live.lease_ends_us > :now
        AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
    WHEN 'lease_over' THEN
        live.lease_ends_us <= :now
        AND (
            SELECT value <= :now OR value > :now + :suspension_max FROM perdure_meta AS meta WHERE key = 'losses_suspended_until_us'
        )
    WHEN 'deadline_over' THEN live.deadline_us <= :now
    WHEN 'timeout_over' THEN live.started_us + tasks.timeout_us + :timeout_grace <= :now
    WHEN 'worker_revoked' THEN
        EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
END
