-- Tasks as they stand, by number, in the order asked for.
SELECT coalesce(json_agg(json_build_object(
    'id', tasks.id,
    'organization', tasks.organization,
    'kind', lanes.kind,
    'queue', lanes.queue,
    'priority', lanes.priority,
    'state', coalesce(live.state, ends.state),
    'reason', ends.reason,
    'generation', coalesce(live.generation, ends.generation),
    'attempt', coalesce(
        live.failures + 1, CASE WHEN attempts.generation = ends.generation THEN attempts.number ELSE 0 END
    ),
    'losses', coalesce(live.losses, ends.losses),
    'max_attempts', tasks.max_attempts,
    'fence', nullif(coalesce(live.fence, ends.fence), 0),
    'worker', CASE WHEN ends.n IS NULL THEN live.worker ELSE attempts.worker END,
    'job', jobs.id,
    'name', tasks.name,
    'waits', coalesce(live.waits, 0),
    'created_us', tasks.created_us,
    'due_us', coalesce(live.due_us, ends.due_us),
    'started_us', CASE WHEN ends.n IS NULL THEN live.started_us ELSE attempts.started_us END,
    'finished_us', ends.finished_us,
    'lease_expires_us', live.lease_ends_us,
    'deadline_us', coalesce(live.deadline_us, ends.deadline_us),
    'expires_us', coalesce(live.expires_us, ends.expires_us),
    'phase', progress.phase,
    'progress', CASE WHEN progress.done IS NOT NULL THEN json_strip_nulls(json_build_object(
        'done', progress.done, 'total', progress.total, 'succeeded', progress.succeeded, 'failed', progress.failed
    )) END,
    'last_error', coalesce(live.last_error, ends.error)::json,
    'summary', ends.summary,
    'cancel', CASE WHEN coalesce(live.cancel_us, ends.cancel_us) IS NOT NULL THEN json_build_object(
        'at_us', coalesce(live.cancel_us, ends.cancel_us),
        'actor', coalesce(live.cancel_actor, ends.cancel_actor),
        'reason', coalesce(live.cancel_reason, ends.cancel_reason),
        'text', coalesce(live.cancel_text, ends.cancel_text),
        'note', coalesce(live.cancel_note, ends.cancel_note)
    ) END,
    'principal', tasks.principal,
    'initiator', tasks.initiator,
    'idempotency_key', tasks.idempotency_key,
    'labels', coalesce(tasks.options -> 'labels', '{}'),
    'metadata', tasks.options -> 'metadata',
    'discarded', ends.discarded_us IS NOT NULL,
    'redacted_us', tasks.redacted_us
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(ns)s::jsonb) WITH ORDINALITY AS asked (n, place)
CROSS JOIN LATERAL (
    SELECT * FROM perdure_tasks AS found
    WHERE found.n = asked.n::bigint AND found.organization = %(organization)s::text
    LIMIT 1
) AS tasks
JOIN perdure_lanes AS lanes ON lanes.lane = tasks.lane
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
LEFT JOIN perdure_attempts AS attempts ON attempts.n = ends.n AND attempts.fence = ends.fence
LEFT JOIN perdure_jobs AS jobs ON jobs.j = tasks.job
LEFT JOIN perdure_progress AS progress ON progress.n = tasks.n
