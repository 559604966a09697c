-- What documents say about claims: [organization, type, name, paused, concurrency, rate, per, weight], of those that say any;
-- and of open breakers, which are pauses until their time and rates of probes from then on, with that time.
SELECT json_group_array(json(said))
FROM (
    SELECT json_array(
        organization, type, name, document ->> '$.paused', document ->> '$.concurrency', document ->> '$.rate',
        document ->> '$.per', document ->> '$.weight'
    ) AS said
    FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_of_flow
    WHERE type IN ('queue', 'organization', 'kind') AND (
        document ->> '$.paused' OR document ->> '$.concurrency' IS NOT NULL OR document ->> '$.rate' IS NOT NULL
        OR document ->> '$.weight' IS NOT NULL
    )
    UNION ALL
    SELECT json_array(
        breakers.organization, 'breaker', breakers.kind, breakers.until_us > :now, NULL,
        definitions.document ->> '$.breaker.probes', definitions.document ->> '$.breaker.open_for', NULL, breakers.until_us
    )
    FROM perdure_breakers AS breakers INDEXED BY perdure_breakers_open
    CROSS JOIN perdure_definitions AS definitions
        ON definitions.organization = breakers.organization AND definitions.type = 'kind' AND definitions.name = breakers.kind
    WHERE breakers.until_us IS NOT NULL AND definitions.document ->> '$.breaker' IS NOT NULL
)
