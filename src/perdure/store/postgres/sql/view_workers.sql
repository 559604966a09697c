-- Workers that serve an organization and were seen since some instant, last seen first. Leases are this organization's.
SELECT coalesce(json_agg(json_build_object(
    'id', workers.id,
    'name', workers.name,
    'host', workers.host,
    'pid', workers.pid,
    'version', workers.version,
    'build', workers.build,
    'kinds', workers.kinds,
    'queues', workers.queues,
    'organizations', CASE
        WHEN workers.organizations = '[]' THEN '[]'::jsonb ELSE jsonb_build_array(%(organization)s::text)
    END,
    'capabilities', workers.capabilities,
    'capacity', workers.capacity,
    'leases', (
        SELECT count(*)
        FROM perdure_live AS live
        WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.fence >= workers.held_from
        AND live.organization = %(organization)s::text
    ),
    'order', workers.ordered,
    'ordered_by', workers.ordered_by,
    'ordered_us', workers.ordered_us,
    'registered_us', workers.registered_us,
    'seen_us', workers.seen_us,
    'left_us', workers.left_us,
    'silent', greatest(0, %(now)s::bigint - workers.seen_us) / 1e6
) ORDER BY workers.seen_us DESC, workers.id), '[]')::text
FROM perdure_workers AS workers
WHERE workers.seen_us >= %(since)s::bigint
AND (workers.organizations = '[]' OR workers.organizations ? %(organization)s::text)
