-- The depths that these organizations and their queues may have, with what waits there now.
SELECT json_group_array(json_array(limited.organization, limited.type, limited.name, limited.document ->> '$.depth', (
    SELECT coalesce(sum(counts.count), 0)
    FROM perdure_lanes AS lanes
    CROSS JOIN perdure_counts AS counts ON counts.lane = lanes.lane AND counts.state IN ('pending', 'queued', 'retrying')
    WHERE lanes.organization = limited.organization
    AND (limited.type = 'organization' OR lanes.queue = limited.name)
)))
FROM perdure_definitions AS limited INDEXED BY perdure_definitions_with_depth
WHERE limited.organization IN (SELECT value FROM json_each(:batch))
AND limited.type IN ('queue', 'organization')
AND limited.document ->> '$.depth' IS NOT NULL
