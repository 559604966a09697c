-- Jobs as they stand, by number, in the order asked for.
SELECT json_group_array(json_object(
    'id', jobs.id,
    'organization', jobs.organization,
    'name', jobs.name,
    'state', jobs.state,
    'policy', jobs.policy,
    'total', jobs.total,
    'open', jobs.open,
    'counts', json_object(
        'succeeded', jobs.succeeded,
        'partially_succeeded', jobs.partial,
        'failed', jobs.failed + jobs.excused,
        'cancelled', jobs.cancelled
    ),
    'created_us', jobs.created_us,
    'started_us', jobs.started_us,
    'finished_us', jobs.finished_us,
    'failing_since_us', jobs.failing_since_us,
    'cancel', CASE WHEN jobs.cancel_us IS NOT NULL THEN json_object(
        'at_us', jobs.cancel_us,
        'actor', jobs.cancel_actor,
        'reason', iif(jobs.stopping = 'failure', 'upstream_failed', 'user'),
        'text', jobs.cancel_text
    ) END,
    'principal', jobs.principal,
    'initiator', jobs.initiator,
    'metadata', json(jobs.metadata)
) ORDER BY asked.key)
FROM json_each(:js) AS asked
CROSS JOIN perdure_jobs AS jobs ON jobs.j = asked.value
WHERE jobs.organization = :organization
