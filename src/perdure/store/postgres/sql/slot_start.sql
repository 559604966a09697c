-- The tasks of a batch of [organization, id] start: when the time of a rate has passed since, its slots are free again.
-- A task may have been queued by a transaction that began after this one: then it starts no earlier than that.
UPDATE perdure_slots AS slots
SET free_us = gates.per_us + greatest(
    %(now)s::bigint, (SELECT live.leased_us FROM perdure_live AS live WHERE live.n = slots.n)
)
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
