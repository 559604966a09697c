-- Workers that serve an organization and were seen since some instant, last seen first. Leases are this organization's.
SELECT json_group_array(json_object(
    'id', workers.id,
    'name', workers.name,
    'host', workers.host,
    'pid', workers.pid,
    'version', workers.version,
    'build', workers.build,
    'kinds', json(workers.kinds),
    'queues', json(workers.queues),
    'organizations', iif(workers.organizations = '[]', json('[]'), json_array(:organization)),
    'capabilities', json(workers.capabilities),
    'capacity', workers.capacity,
    'leases', (
        SELECT count(*)
        FROM perdure_live AS live INDEXED BY perdure_live_held
        WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.organization = :organization
    ),
    'order', workers.ordered,
    'ordered_by', workers.ordered_by,
    'ordered_us', workers.ordered_us,
    'registered_us', workers.registered_us,
    'seen_us', workers.seen_us,
    'left_us', workers.left_us,
    'silent', max(0, :now - workers.seen_us) / 1e6
) ORDER BY workers.seen_us DESC, workers.id)
FROM perdure_workers AS workers INDEXED BY perdure_workers_by_seen
WHERE workers.seen_us >= :since
AND (
    workers.organizations = '[]'
    OR :organization IN (SELECT value FROM json_each(workers.organizations))
)
