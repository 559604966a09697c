-- Of the tasks of a batch, in its order: kind, queue, priority, options; all of them null where there is no such task.
SELECT coalesce(json_agg(json_build_array(
    lanes.kind, lanes.queue, lanes.priority, tasks.options::text
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS asked (id, place)
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = %(organization)s::text AND tasks.id = ANY (ARRAY[asked.id])
LEFT JOIN perdure_lanes AS lanes ON lanes.lane = ANY (ARRAY[tasks.lane])
