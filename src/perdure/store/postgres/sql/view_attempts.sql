-- All claims of a task by fence: those that have ended, then the live one.
SELECT json_build_object(
    'ended', coalesce((
        SELECT json_agg(json_build_object(
            'id', attempts.id,
            'generation', attempts.generation,
            'attempt', attempts.number,
            'fence', attempts.fence,
            'state', attempts.state,
            'reason', attempts.reason,
            'worker', attempts.worker,
            'build', attempts.build,
            'queued_us', attempts.queued_us,
            'leased_us', attempts.leased_us,
            'started_us', attempts.started_us,
            'ended_us', attempts.ended_us,
            'error', attempts.error::json
        ) ORDER BY attempts.fence)
        FROM perdure_attempts AS attempts
        WHERE attempts.n = tasks.n
    ), '[]'),
    'live', (
        SELECT json_build_object(
            'id', live.attempt_id,
            'generation', live.generation,
            'attempt', live.failures + 1,
            'fence', live.fence,
            'state', CASE WHEN live.started_us IS NULL THEN 'leased' ELSE 'running' END,
            'worker', live.worker,
            'build', workers.build,
            'queued_us', live.queued_us,
            'leased_us', live.leased_us,
            'started_us', live.started_us
        )
        FROM perdure_live AS live
        LEFT JOIN perdure_workers AS workers ON workers.id = live.worker
        WHERE live.n = tasks.n AND live.attempt_id IS NOT NULL
    )
)::text
FROM perdure_tasks AS tasks
WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
