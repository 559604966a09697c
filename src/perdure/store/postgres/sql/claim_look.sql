-- What a worker may claim, with its row locked, so that its claims come one after the other; and what has to be done
-- before one: the first instants, of those that are looked at, at which tasks are due or overdue by now, which is the newest
-- lane, and what documents and breakers say about claims, as in flow_read.
-- For a claim that is `alone`, which follows in the same message and commits with it, the server says here whether all is as it
-- was guessed, and so whether that claim may go on: read by statements of their own, at an instant that its clock has. Such a
-- commit awaits no disk.
SELECT
    look.*,
    CASE WHEN %(alone)s::boolean THEN set_config('perdure.as_guessed', (
        look.kinds = %(kinds)s::text AND look.queues = %(queues)s::text AND look.organizations = %(organizations)s::text
        AND look.capabilities = %(capabilities)s::text AND look.capacity = %(capacity)s::bigint
        AND look.ordered = %(ordered)s::text AND look.held_from >= %(held_from)s::bigint
        AND look.newest_lane IS NOT DISTINCT FROM %(newest_lane)s::bigint AND look.flow IS NOT DISTINCT FROM %(flow)s::text
        AND look.due_us IS NULL AND look.overdue_us IS NULL
        AND (extract(epoch FROM clock_timestamp()) * 1000000)::bigint BETWEEN %(earliest)s::bigint AND %(latest)s::bigint
        AND current_setting('transaction_isolation') = 'read committed'
    )::text, true) END,
    CASE WHEN %(alone)s::boolean THEN set_config('synchronous_commit', 'off', true) END,
    CASE WHEN %(alone)s::boolean THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END
FROM (
    SELECT
        kinds::text AS kinds, queues::text AS queues, organizations::text AS organizations, capabilities::text AS capabilities,
        capacity, ordered, held_from,
        least((
            SELECT due_us FROM perdure_live AS live
            WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL
            AND due_us >= %(due_since)s::bigint AND due_us <= %(now)s::bigint
            ORDER BY due_us LIMIT 1
        ), (
            SELECT free_us FROM perdure_slots AS slots
            WHERE free_us >= %(due_since)s::bigint AND free_us <= %(now)s::bigint
            ORDER BY free_us LIMIT 1
        )) AS due_us,
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
        )) AS overdue_us,
        (SELECT max(lane) FROM perdure_lanes AS lanes) AS newest_lane,
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
            ) AS told
        ) AS flow
    FROM perdure_workers AS workers
    WHERE id = %(worker)s::text AND left_us IS NULL
    FOR NO KEY UPDATE OF workers
) AS look
