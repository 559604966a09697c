-- The turns that tasks of a batch of [organization, id] have in their lanes, in its order: [[gate, number of the task], ...].
SELECT coalesce(jsonb_agg(jsonb_build_array(slots.gate, slots.n) ORDER BY started.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS started (value, place)
JOIN perdure_tasks AS tasks
    ON tasks.organization = ANY (ARRAY[started.value ->> 0]) AND tasks.id = ANY (ARRAY[started.value ->> 1])
JOIN perdure_slots AS slots ON slots.n = ANY (ARRAY[tasks.n]) AND slots.free_us IS NULL
JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[slots.gate])
WHERE gates.sort = 'fair'
