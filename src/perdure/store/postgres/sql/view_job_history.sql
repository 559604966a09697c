-- All rows that tell a job's own history.
SELECT json_build_object(
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
    'events', coalesce((
        SELECT json_agg(json_build_object(
            'e', events.e,
            'task', (SELECT tasks.id FROM perdure_tasks AS tasks WHERE tasks.n = events.n),
            'at_us', events.at_us,
            'generation', events.generation,
            'type', events.type,
            'actor', events.actor,
            'initiator', events.initiator,
            'data', events.data::json
        ) ORDER BY events.e)
        FROM perdure_events AS events
        WHERE events.job = jobs.j
    ), '[]')
)::text
FROM perdure_jobs AS jobs
WHERE jobs.organization = %(organization)s::text AND jobs.id = %(job)s::text
