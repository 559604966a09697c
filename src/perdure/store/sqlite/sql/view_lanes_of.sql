-- The lanes of an organization that are of some kinds and queues; an empty list is any.
SELECT json_group_array(lane)
FROM perdure_lanes AS lanes
WHERE organization = :organization
AND (:queues = '[]' OR queue IN (SELECT value FROM json_each(:queues)))
AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
