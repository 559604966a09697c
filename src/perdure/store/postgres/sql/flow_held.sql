-- How many tasks are held, for each of a batch of [organization, type, name] of queues, organizations and kinds.
SELECT coalesce(jsonb_agg((
    SELECT coalesce(sum(counts.count), 0)
    FROM perdure_lanes AS lanes
    JOIN perdure_counts AS counts ON counts.lane = lanes.lane AND counts.state IN ('leased', 'running', 'cancelling')
    WHERE lanes.organization = asked.value ->> 0
    AND CASE asked.value ->> 1
        WHEN 'organization' THEN true
        WHEN 'queue' THEN lanes.queue = asked.value ->> 2
        ELSE lanes.kind = asked.value ->> 2
    END
) + (
    SELECT coalesce(sum(changes.change), 0)
    FROM perdure_count_changes AS changes
    JOIN perdure_lanes AS lanes ON lanes.lane = changes.lane
    WHERE changes.state IN ('leased', 'running', 'cancelling')
    AND lanes.organization = asked.value ->> 0
    AND CASE asked.value ->> 1
        WHEN 'organization' THEN true
        WHEN 'queue' THEN lanes.queue = asked.value ->> 2
        ELSE lanes.kind = asked.value ->> 2
    END
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
