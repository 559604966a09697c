-- How an attempt stands that adds tasks to its job: number, lane, state, rest of the time to stop, generation, its job's
-- number, id and policy, who submitted its task and for whom, and its task's name. No row where it is not live.
SELECT json_array(
    live.n, live.lane, live.state, live.cancel_ends_us - :now, live.generation,
    jobs.j, jobs.id, jobs.policy, tasks.principal, tasks.initiator, tasks.name
)
FROM perdure_tasks AS tasks
CROSS JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_jobs AS jobs ON jobs.j = live.job
WHERE tasks.organization = :organization AND tasks.id = :task
AND live.attempt_id = :attempt AND live.token = :token
AND live.lease_ends_us > :now AND live.deadline_us > :now
AND coalesce(live.cancel_ends_us, :now + 1) > :now
AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
