-- All rows that tell a task's history.
SELECT json_build_object(
    'created_us', tasks.created_us,
    'principal', tasks.principal,
    'initiator', tasks.initiator,
    'standing', coalesce((
        SELECT json_build_object(
            'state', live.state,
            'generation', live.generation,
            'fence', live.fence,
            'attempt_id', live.attempt_id,
            'queued_us', live.queued_us,
            'cancel_us', live.cancel_us,
            'cancel_actor', live.cancel_actor,
            'cancel_reason', live.cancel_reason,
            'cancel_text', live.cancel_text,
            'cancel_delivered_us', live.cancel_delivered_us
        )
        FROM perdure_live AS live
        WHERE live.n = tasks.n
    ), (
        SELECT json_build_object(
            'state', ends.state,
            'generation', ends.generation,
            'fence', ends.fence,
            'attempt_id', ends.attempt_id,
            'queued_us', ends.queued_us,
            'cancel_us', ends.cancel_us,
            'cancel_actor', ends.cancel_actor,
            'cancel_reason', ends.cancel_reason,
            'cancel_text', ends.cancel_text,
            'cancel_delivered_us', ends.cancel_delivered_us,
            'reason', ends.reason,
            'actor', ends.actor,
            'finished_us', ends.finished_us
        )
        FROM perdure_ends AS ends
        WHERE ends.n = tasks.n
    )),
    'attempts', coalesce((
        SELECT json_agg(claims.attempt ORDER BY claims.fence)
        FROM (
            SELECT attempts.fence, json_build_object(
                'id', attempts.id,
                'fence', attempts.fence,
                'generation', attempts.generation,
                'number', attempts.number,
                'worker', attempts.worker,
                'state', attempts.state,
                'reason', attempts.reason,
                'task_state', attempts.task_state,
                'actor', attempts.actor,
                'queued_us', attempts.queued_us,
                'leased_us', attempts.leased_us,
                'started_us', attempts.started_us,
                'ended_us', attempts.ended_us,
                'due_us', attempts.due_us,
                'error', attempts.error::json -> 'type'
            ) AS attempt
            FROM perdure_attempts AS attempts
            WHERE attempts.n = tasks.n
            UNION ALL
            SELECT live.fence, json_build_object(
                'id', live.attempt_id,
                'fence', live.fence,
                'generation', live.generation,
                'number', live.failures + 1,
                'worker', live.worker,
                'queued_us', live.queued_us,
                'leased_us', live.leased_us,
                'started_us', live.started_us
            )
            FROM perdure_live AS live
            WHERE live.n = tasks.n AND live.attempt_id IS NOT NULL
        ) AS claims
    ), '[]'),
    'events', coalesce((
        SELECT json_agg(json_build_object(
            'e', events.e,
            'at_us', events.at_us,
            'generation', events.generation,
            'type', events.type,
            'actor', events.actor,
            'initiator', events.initiator,
            'data', events.data::json
        ) ORDER BY events.e)
        FROM perdure_events AS events
        WHERE events.n = tasks.n
    ), '[]')
)::text
FROM perdure_tasks AS tasks
WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
