-- Remove gates that nobody has used for long and at which nothing is: at most :count.
DELETE FROM perdure_gates AS gates
WHERE gate IN (
    SELECT gate
    FROM perdure_gates AS unused INDEXED BY perdure_gates_by_use
    WHERE used_us < :before
    AND NOT EXISTS (SELECT 1 FROM perdure_slots AS slots WHERE slots.gate = unused.gate)
    AND NOT EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = unused.gate)
    ORDER BY used_us
    LIMIT :count
)
