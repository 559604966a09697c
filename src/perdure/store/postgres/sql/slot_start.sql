-- The tasks of a batch of [organization, id] start: from now on their slots of rates are free again after the time of that rate.
UPDATE perdure_slots AS slots
SET free_us = %(now)s::bigint + gates.per_us
FROM jsonb_array_elements(%(batch)s::jsonb) AS started (value), perdure_tasks AS tasks, perdure_gates AS gates
WHERE tasks.organization = ANY (ARRAY[started.value ->> 0]) AND tasks.id = ANY (ARRAY[started.value ->> 1])
AND slots.n = tasks.n AND slots.free_us IS NULL
AND gates.gate = slots.gate AND gates.sort = 'rate'
