-- The tasks of a batch of [organization, id] start: from now on their slots of rates are free again after the time of that rate.
UPDATE perdure_slots AS slots
SET free_us = %(now)s::bigint + gates.per_us
FROM perdure_gates AS gates
WHERE slots.n = ANY (ARRAY(
    SELECT tasks.n
    FROM jsonb_array_elements(%(batch)s::jsonb) AS started (value)
    CROSS JOIN LATERAL (
        SELECT found.n FROM perdure_tasks AS found
        WHERE found.organization = started.value ->> 0 AND found.id = started.value ->> 1
        LIMIT 1
    ) AS tasks
)) AND slots.free_us IS NULL
AND gates.gate = ANY (ARRAY[slots.gate]) AND gates.sort = 'rate'
