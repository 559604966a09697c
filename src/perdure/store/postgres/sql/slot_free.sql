-- Take back the slots of tasks of a batch of [number, whether it ended], but those of starts at a rate; returns the gates.
-- A task that only waits for its time keeps its turn in an order.
DELETE FROM perdure_slots AS slots
USING jsonb_array_elements(%(batch)s::jsonb) AS leaving (value), perdure_gates AS gates
WHERE slots.n = ANY (ARRAY[(leaving.value ->> 0)::bigint]) AND slots.free_us IS NULL
AND gates.gate = slots.gate
AND ((leaving.value ->> 1) IN ('1', 'true') OR gates.sort IN ('concurrency', 'fair'))
RETURNING slots.gate
