-- What documents of an organization say about claims: [organization, type, name, paused, concurrency, rate, per, weight], of those
-- that say any; and of open breakers, which are pauses until their time and rates of probes from then on, with that time.
SELECT coalesce(jsonb_agg(said), '[]')::text
FROM (
    SELECT jsonb_build_array(
        organization, type, name, document -> 'paused', document -> 'concurrency', document -> 'rate', document -> 'per',
        document -> 'weight'
    ) AS said
    FROM perdure_definitions AS definitions
    WHERE organization = %(organization)s::text AND type IN ('queue', 'organization', 'kind') AND (
        document ->> 'paused' = 'true' OR document ->> 'concurrency' IS NOT NULL OR document ->> 'rate' IS NOT NULL
        OR document ->> 'weight' IS NOT NULL
    )
    UNION ALL
    SELECT jsonb_build_array(
        breakers.organization, 'breaker', breakers.kind, breakers.until_us > %(now)s::bigint, NULL,
        definitions.document -> 'breaker' -> 'probes', definitions.document -> 'breaker' -> 'open_for', NULL, breakers.until_us
    )
    FROM perdure_breakers AS breakers
    JOIN perdure_definitions AS definitions
        ON definitions.organization = breakers.organization AND definitions.type = 'kind' AND definitions.name = breakers.kind
    WHERE breakers.organization = %(organization)s::text AND breakers.until_us IS NOT NULL
    AND definitions.document ->> 'breaker' IS NOT NULL
) AS flow
