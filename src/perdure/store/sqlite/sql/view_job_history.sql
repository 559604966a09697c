-- All rows that tell a job's own history.
SELECT json_object(
    'created_us', jobs.created_us,
    'started_us', jobs.started_us,
    'finished_us', jobs.finished_us,
    'failing_since_us', jobs.failing_since_us,
    'state', jobs.state,
    'total', jobs.total,
    'principal', jobs.principal,
    'initiator', jobs.initiator,
    'stopping', jobs.stopping,
    'cancel_us', jobs.cancel_us,
    'cancel_actor', jobs.cancel_actor,
    'cancel_text', jobs.cancel_text,
    'events', json((
        SELECT json_group_array(json_object(
            'e', events.e,
            'task', tasks.id,
            'at_us', events.at_us,
            'generation', events.generation,
            'type', events.type,
            'actor', events.actor,
            'initiator', events.initiator,
            'data', json(events.data)
        ) ORDER BY events.e)
        FROM perdure_events AS events INDEXED BY perdure_events_by_job
        LEFT JOIN perdure_tasks AS tasks ON tasks.n = events.n
        WHERE events.job = jobs.j
    ))
)
FROM perdure_jobs AS jobs
WHERE jobs.organization = :organization AND jobs.id = :job
