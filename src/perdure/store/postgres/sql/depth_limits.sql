-- The depths that these organizations and their queues may have, with what waits there now.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    limited.organization, limited.type, limited.name, (limited.document ->> 'depth')::bigint,
    (
        SELECT coalesce(sum(counts.count), 0)
        FROM perdure_lanes AS lanes
        JOIN perdure_counts AS counts ON counts.lane = lanes.lane AND counts.state IN ('pending', 'queued', 'retrying')
        WHERE lanes.organization = limited.organization
        AND (limited.type = 'organization' OR lanes.queue = limited.name)
    ) + (
        SELECT coalesce(sum(changes.change), 0)
        FROM perdure_count_changes AS changes
        JOIN perdure_lanes AS lanes ON lanes.lane = changes.lane
        WHERE changes.state IN ('pending', 'queued', 'retrying')
        AND lanes.organization = limited.organization
        AND (limited.type = 'organization' OR lanes.queue = limited.name)
    )
)), '[]')::text
FROM perdure_definitions AS limited
WHERE limited.organization IN (SELECT value FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value))
AND limited.type IN ('queue', 'organization')
AND limited.document ->> 'depth' IS NOT NULL
