-- Stage the oldest waiting tasks of a queue.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor)
SELECT live.n, live.lane, live.job, live.state, 'cancelled', 'purged', :actor
FROM perdure_live AS live
WHERE live.organization = :organization
AND live.lane IN (SELECT lane FROM perdure_lanes AS lanes WHERE lanes.organization = :organization AND lanes.queue = :queue)
AND live.state IN ('pending', 'queued', 'retrying')
ORDER BY live.n
LIMIT :count
