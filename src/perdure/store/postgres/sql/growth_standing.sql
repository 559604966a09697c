-- How an attempt stands that adds tasks to its job: number, lane, state, rest of the time to stop, generation, its job's
-- number, id and policy, who submitted its task and for whom, and its task's name. No row where it is not live.
SELECT jsonb_build_array(
    live.n, live.lane, live.state, live.cancel_ends_us - %(now)s::bigint, live.generation,
    jobs.j, jobs.id, jobs.policy, tasks.principal, tasks.initiator, tasks.name
)::text
FROM perdure_tasks AS tasks
JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n])
LEFT JOIN perdure_jobs AS jobs ON jobs.j = ANY (ARRAY[live.job])
WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
AND live.attempt_id = %(attempt)s::text AND live.token = %(token)s::text
AND live.lease_ends_us > %(now)s::bigint AND live.deadline_us > %(now)s::bigint
AND coalesce(live.cancel_ends_us, %(now)s::bigint + 1) > %(now)s::bigint
AND NOT EXISTS (
    SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke'
)
