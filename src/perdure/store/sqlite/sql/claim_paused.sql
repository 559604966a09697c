-- Queues and organizations that are paused.
SELECT json_group_array(json_array(organization, type, name))
FROM definitions INDEXED BY definitions_paused
WHERE type IN ('queue', 'organization') AND document ->> '$.paused'
