-- Queues and organizations that are paused.
SELECT json_group_array(json_array(organization, type, name))
FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_paused
WHERE type IN ('queue', 'organization') AND document ->> '$.paused'
