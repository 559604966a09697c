-- Remove lanes that nothing stands for.
DELETE FROM perdure_lanes AS lanes
WHERE lanes.lane IN (SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))
