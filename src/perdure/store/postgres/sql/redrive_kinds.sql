-- Of the tasks of a batch, in its order, the kind and which results of others fill which fields of the payload; the kind is
-- null where there is no such task.
SELECT coalesce(json_agg(json_build_array(lanes.kind, tasks.options::json -> 'bindings') ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS asked (id, place)
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = %(organization)s::text AND tasks.id = ANY (ARRAY[asked.id])
LEFT JOIN perdure_lanes AS lanes ON lanes.lane = ANY (ARRAY[tasks.lane])
