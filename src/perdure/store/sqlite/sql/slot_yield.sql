-- Take back the slots of tasks of a batch of [number, whether it ended], of which some go on later, but those of starts at a rate;
-- returns the gates. A task that only waits for its time keeps its turn in an order.
DELETE FROM perdure_slots AS slots
WHERE free_us IS NULL
AND (n, gate) IN (
    SELECT held.n, held.gate
    FROM json_each(:batch) AS leaving
    CROSS JOIN perdure_slots AS held INDEXED BY perdure_slots_by_task ON held.n = leaving.value ->> 0 AND held.free_us IS NULL
    CROSS JOIN perdure_gates AS gates ON gates.gate = held.gate
    WHERE leaving.value ->> 1 OR gates.sort IN ('concurrency', 'fair')
)
RETURNING gate
