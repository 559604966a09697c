-- Take back the slots of tasks of a batch of [number, whether it ended], of which some go on later, but those of starts at a rate;
-- returns the gates. A task that only waits for its time keeps its turn in an order.
DELETE FROM perdure_slots AS slots
USING perdure_gates AS gates
WHERE slots.n = ANY (ARRAY(
    SELECT (leaving.value ->> 0)::bigint FROM jsonb_array_elements(%(batch)s::jsonb) AS leaving (value)
)) AND slots.free_us IS NULL
AND gates.gate = ANY (ARRAY[slots.gate])
AND (gates.sort IN ('concurrency', 'fair') OR slots.n = ANY (ARRAY(
    SELECT (leaving.value ->> 0)::bigint
    FROM jsonb_array_elements(%(batch)s::jsonb) AS leaving (value)
    WHERE leaving.value ->> 1 IN ('1', 'true')
)))
RETURNING slots.gate
