-- The states of tasks by id, in the order of the batch; null where there is none.
SELECT coalesce(jsonb_agg(coalesce(live.state, ends.state) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = ANY (ARRAY[asked.value ->> 0]) AND tasks.id = ANY (ARRAY[asked.value ->> 1])
LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n])
LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[tasks.n])
