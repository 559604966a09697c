-- Remove gates that nobody has used for long and at which nothing is. One that is taken up meanwhile is left.
WITH unused AS MATERIALIZED (
    SELECT gates.gate
    FROM perdure_gates AS gates
    WHERE gates.used_us < %(before)s::bigint
    AND NOT EXISTS (SELECT 1 FROM perdure_slots AS slots WHERE slots.gate = gates.gate)
    AND NOT EXISTS (SELECT 1 FROM perdure_live AS live WHERE live.gate = gates.gate)
    ORDER BY gates.used_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_gates AS gates
USING unused
WHERE gates.gate = unused.gate AND gates.used_us < %(before)s::bigint
