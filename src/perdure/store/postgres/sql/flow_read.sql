-- What documents of an organization say about claims: [organization, type, name, paused, concurrency, rate, per, weight], of those
-- that say any.
SELECT coalesce(jsonb_agg(
    jsonb_build_array(
        organization, type, name, document -> 'paused', document -> 'concurrency', document -> 'rate', document -> 'per',
        document -> 'weight'
    )
), '[]')::text
FROM perdure_definitions AS definitions
WHERE organization = %(organization)s::text AND type IN ('queue', 'organization', 'kind') AND (
    document ->> 'paused' = 'true' OR document ->> 'concurrency' IS NOT NULL OR document ->> 'rate' IS NOT NULL
    OR document ->> 'weight' IS NOT NULL
)
