-- What a worker may claim, with its row locked, so that its claims come one after the other; and what has to be done
-- before one: the first instants, of those that are looked at, at which tasks are due or overdue by now, which is the newest
-- lane, and what documents and breakers say about claims, as in flow_read.
SELECT
    kinds::text, queues::text, organizations::text, capabilities::text, capacity, ordered, held_from,
    least((
        SELECT due_us FROM perdure_live AS live
        WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL
        AND due_us >= %(due_since)s::bigint AND due_us <= %(now)s::bigint
        ORDER BY due_us LIMIT 1
    ), (
        SELECT free_us FROM perdure_slots AS slots
        WHERE free_us >= %(due_since)s::bigint AND free_us <= %(now)s::bigint
        ORDER BY free_us LIMIT 1
    )),
    least((
        SELECT expires_us FROM perdure_live AS live
        WHERE state IN ('pending', 'queued', 'retrying')
        AND expires_us >= %(overdue_since)s::bigint AND expires_us <= %(now)s::bigint
        ORDER BY expires_us LIMIT 1
    ), (
        SELECT deadline_us FROM perdure_live AS live
        WHERE state IN ('pending', 'queued', 'retrying')
        AND deadline_us >= %(overdue_since)s::bigint AND deadline_us <= %(now)s::bigint
        ORDER BY deadline_us LIMIT 1
    )),
    (SELECT max(lane) FROM perdure_lanes AS lanes),
    (
        SELECT jsonb_agg(said ORDER BY organization, type, name)::text
        FROM (
            SELECT organization, type, name, jsonb_build_array(
                organization, type, name, document -> 'paused', document -> 'concurrency', document -> 'rate',
                document -> 'per', document -> 'weight'
            ) AS said
            FROM perdure_definitions AS definitions
            WHERE type IN ('queue', 'organization', 'kind') AND (
                document ->> 'paused' = 'true' OR document ->> 'concurrency' IS NOT NULL OR document ->> 'rate' IS NOT NULL
                OR document ->> 'weight' IS NOT NULL
            )
            UNION ALL
            SELECT breakers.organization, 'breaker', breakers.kind, jsonb_build_array(
                breakers.organization, 'breaker', breakers.kind, breakers.until_us > %(now)s::bigint, NULL,
                definitions.document -> 'breaker' -> 'probes', definitions.document -> 'breaker' -> 'open_for', NULL,
                breakers.until_us
            )
            FROM perdure_breakers AS breakers
            JOIN perdure_definitions AS definitions
                ON definitions.organization = breakers.organization AND definitions.type = 'kind'
                AND definitions.name = breakers.kind
            WHERE breakers.until_us IS NOT NULL AND definitions.document ->> 'breaker' IS NOT NULL
        ) AS flow
    )
FROM perdure_workers AS workers
WHERE id = %(worker)s::text AND left_us IS NULL
FOR NO KEY UPDATE OF workers
