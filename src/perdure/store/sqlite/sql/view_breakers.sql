-- The breakers that the kinds of an organization have: [kind, breaker, what was last changed, and what is counted since].
SELECT json_group_array(json_array(
    definitions.name, json(definitions.document -> '$.breaker'), breakers.since_us, breakers.until_us, breakers.attempts,
    breakers.failures, coalesce(breakers.trips, 0), breakers.event, breakers.actor,
    json((
        SELECT json_group_array(json_array(outcomes.bucket_us, outcomes.attempts, outcomes.failures))
        FROM perdure_outcomes AS outcomes
        WHERE outcomes.organization = definitions.organization AND outcomes.kind = definitions.name
        AND outcomes.since_us = coalesce(breakers.since_us, 0)
    ))
) ORDER BY definitions.name)
FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_of_breakers
LEFT JOIN perdure_breakers AS breakers
    ON breakers.organization = definitions.organization AND breakers.kind = definitions.name
WHERE definitions.organization = :organization AND definitions.type = 'kind' AND definitions.document ->> '$.breaker' IS NOT NULL
