-- All claims of a task by fence: those that have ended, then the live one.
SELECT json_object(
    'ended', json((
        SELECT json_group_array(json_object(
            'id', id,
            'generation', generation,
            'attempt', number,
            'fence', fence,
            'state', state,
            'reason', reason,
            'worker', worker,
            'build', build,
            'queued_us', queued_us,
            'leased_us', leased_us,
            'started_us', started_us,
            'ended_us', ended_us,
            'error', json(error)
        ) ORDER BY fence)
        FROM perdure_attempts AS attempts
        WHERE attempts.n = tasks.n
    )),
    'live', json((
        SELECT json_object(
            'id', live.attempt_id,
            'generation', live.generation,
            'attempt', live.failures + 1,
            'fence', live.fence,
            'state', iif(live.started_us IS NULL, 'leased', 'running'),
            'worker', live.worker,
            'build', workers.build,
            'queued_us', live.queued_us,
            'leased_us', live.leased_us,
            'started_us', live.started_us
        )
        FROM perdure_live AS live
        LEFT JOIN perdure_workers AS workers ON workers.id = live.worker
        WHERE live.n = tasks.n AND live.attempt_id IS NOT NULL
    ))
)
FROM perdure_tasks AS tasks
WHERE tasks.organization = :organization AND tasks.id = :task
