-- Stage queued tasks that nobody could run for long enough.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor, error)
SELECT
    live.n, live.lane, live.job, live.state, iif(coalesce(queue.document ->> '$.dead_letters', 1), 'dead_lettered', 'failed'),
    'unroutable', 'system',
    json_object('type', 'Unroutable', 'message', 'no worker of queue ' || lanes.queue || ' has the kind ' || lanes.kind)
FROM perdure_lanes AS lanes
CROSS JOIN perdure_live AS live INDEXED BY perdure_live_ready ON live.lane = lanes.lane AND live.state = 'queued'
LEFT JOIN perdure_definitions AS queue
    ON queue.organization = lanes.organization AND queue.type = 'queue' AND queue.name = lanes.queue
WHERE lanes.lane IN (SELECT value ->> 0 FROM json_each(:batch))
AND lanes.unroutable_since_us IS NOT NULL AND lanes.unroutable_since_us + :after <= :now
AND live.queued_us + :after <= :now
LIMIT :count
