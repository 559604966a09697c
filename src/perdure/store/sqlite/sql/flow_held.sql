-- How many tasks are held, for each of a batch of [organization, type, name] of queues, organizations and kinds.
SELECT json_group_array((
    SELECT coalesce(sum(counts.count), 0)
    FROM perdure_lanes AS lanes
    CROSS JOIN perdure_counts AS counts
        ON counts.lane = lanes.lane AND counts.state IN ('leased', 'running', 'cancelling')
    WHERE lanes.organization = asked.value ->> 0
    AND CASE asked.value ->> 1
        WHEN 'organization' THEN 1
        WHEN 'queue' THEN lanes.queue = asked.value ->> 2
        ELSE lanes.kind = asked.value ->> 2
    END
) ORDER BY asked.key)
FROM json_each(:batch) AS asked
