-- Stage waiting tasks whose execution deadline has passed.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor)
SELECT
    live.n, live.lane, live.job, live.state, iif(coalesce(queue.document ->> '$.dead_letters', 1), 'dead_lettered', 'failed'),
    'deadline', 'system'
FROM perdure_live AS live INDEXED BY perdure_live_deadline
CROSS JOIN perdure_lanes AS lanes ON lanes.lane = live.lane
LEFT JOIN perdure_definitions AS queue
    ON queue.organization = lanes.organization AND queue.type = 'queue' AND queue.name = lanes.queue
WHERE live.deadline_us IS NOT NULL AND live.attempt_id IS NULL AND live.deadline_us <= :now
ORDER BY live.deadline_us
LIMIT :count
