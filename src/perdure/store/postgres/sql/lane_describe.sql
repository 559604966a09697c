-- What the lanes of a batch of numbers stand for.
SELECT coalesce(jsonb_agg(jsonb_build_array(lane, organization, queue, kind, capabilities, priority)), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
JOIN perdure_lanes AS lanes ON lanes.lane = asked.value::bigint
