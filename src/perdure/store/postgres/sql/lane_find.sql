-- The numbers of lanes, in the order of the batch.
SELECT coalesce(jsonb_agg(lanes.lane ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_lanes AS lanes
    ON lanes.organization = asked.value ->> 0
    AND lanes.queue = asked.value ->> 1
    AND lanes.kind = asked.value ->> 2
    AND lanes.capabilities = (asked.value ->> 3)::jsonb
    AND lanes.priority = (asked.value ->> 4)::bigint
