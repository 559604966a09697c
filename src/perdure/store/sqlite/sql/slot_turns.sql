-- The turns that tasks of a batch of [organization, id] have in their lanes, in its order: [[gate, number of the task], ...].
SELECT json_group_array(json_array(held.gate, held.n) ORDER BY started.key)
FROM json_each(:batch) AS started
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = started.value ->> 0 AND tasks.id = started.value ->> 1
CROSS JOIN perdure_slots AS held INDEXED BY perdure_slots_by_task ON held.n = tasks.n AND held.free_us IS NULL
CROSS JOIN perdure_gates AS gates ON gates.gate = held.gate
WHERE gates.sort = 'fair'
