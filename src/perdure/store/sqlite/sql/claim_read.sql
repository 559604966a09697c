-- The leases of a batch, with all that their handlers need.
SELECT json_group_array(json_array(
    live.organization, tasks.id, live.attempt_id, live.token, lanes.kind, lanes.queue, lanes.priority,
    CASE tasks.encoding WHEN 'json' THEN CAST(tasks.payload AS TEXT) ELSE hex(tasks.payload) END, tasks.encoding,
    live.failures + 1, live.fence, live.generation, live.lease_ends_us - :now, tasks.timeout_us,
    live.deadline_us - :now, live.expires_us - :now, jobs.id, tasks.name, tasks.parents, tasks.retry, tasks.options,
    tasks.initiator, checkpoints.value, tasks.max_attempts, live.lane, live.job
) ORDER BY picked.key)
FROM json_each(:batch) AS picked
CROSS JOIN perdure_live AS live ON live.n = picked.value ->> 0 AND live.attempt_id = picked.value ->> 1
CROSS JOIN perdure_tasks AS tasks ON tasks.n = live.n
CROSS JOIN perdure_lanes AS lanes ON lanes.lane = live.lane
LEFT JOIN perdure_jobs AS jobs ON jobs.j = live.job
LEFT JOIN perdure_checkpoints AS checkpoints ON checkpoints.n = live.n AND checkpoints.generation = live.generation
