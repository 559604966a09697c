-- Keep a worker's account of itself; what operators ordered stays.
INSERT INTO perdure_workers (
    id, name, host, pid, version, build, kinds, queues, organizations, capabilities, capacity, registered_us, seen_us
)
VALUES (
    %(id)s::text, %(name)s::text, %(host)s::text, %(pid)s::bigint, %(version)s::text, %(build)s::text, %(kinds)s::jsonb,
    %(queues)s::jsonb, %(organizations)s::jsonb, %(capabilities)s::jsonb, %(capacity)s::bigint, %(now)s::bigint,
    %(now)s::bigint
)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, host = excluded.host, pid = excluded.pid, version = excluded.version,
    build = excluded.build, kinds = excluded.kinds, queues = excluded.queues, organizations = excluded.organizations,
    capabilities = excluded.capabilities, capacity = excluded.capacity, registered_us = excluded.registered_us,
    seen_us = excluded.seen_us, left_us = NULL
RETURNING ordered
