-- What documents of an organization say about claims: [organization, type, name, paused, concurrency, rate, per, weight], of those that say any.
SELECT json_group_array(json_array(
    organization, type, name, document ->> '$.paused', document ->> '$.concurrency', document ->> '$.rate',
    document ->> '$.per', document ->> '$.weight'
))
FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_of_flow
WHERE organization = :organization AND type IN ('queue', 'organization', 'kind') AND (
    document ->> '$.paused' OR document ->> '$.concurrency' IS NOT NULL OR document ->> '$.rate' IS NOT NULL
    OR document ->> '$.weight' IS NOT NULL
)
