-- Jobs as they stand, by number, in the order asked for.
SELECT coalesce(json_agg(json_build_object(
    'id', jobs.id,
    'organization', jobs.organization,
    'name', jobs.name,
    'state', jobs.state,
    'policy', jobs.policy,
    'total', jobs.total,
    'open', jobs.open,
    'counts', json_build_object(
        'succeeded', jobs.succeeded,
        'partially_succeeded', jobs.partial,
        'failed', jobs.failed + jobs.excused,
        'cancelled', jobs.cancelled
    ),
    'created_us', jobs.created_us,
    'started_us', jobs.started_us,
    'finished_us', jobs.finished_us,
    'failing_since_us', jobs.failing_since_us,
    'cancel', CASE WHEN jobs.cancel_us IS NOT NULL THEN json_build_object(
        'at_us', jobs.cancel_us,
        'actor', jobs.cancel_actor,
        'reason', CASE WHEN jobs.stopping = 'failure' THEN 'upstream_failed' ELSE 'user' END,
        'text', jobs.cancel_text
    ) END,
    'principal', jobs.principal,
    'initiator', jobs.initiator,
    'metadata', jobs.metadata::json
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(js)s::jsonb) WITH ORDINALITY AS asked (j, place)
CROSS JOIN LATERAL (
    SELECT * FROM perdure_jobs AS found
    WHERE found.j = asked.j::bigint AND found.organization = %(organization)s::text
    LIMIT 1
) AS jobs
