-- Take back slots of rates whose time has passed, at most %(count)s; returns the gates. What another run has is left to it.
WITH passed AS MATERIALIZED (
    SELECT gate, n, taken_us
    FROM perdure_slots AS slots
    WHERE free_us IS NOT NULL AND free_us >= %(since)s::bigint AND free_us <= %(now)s::bigint
    ORDER BY free_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_slots AS slots
USING passed
WHERE slots.gate = passed.gate AND slots.n = passed.n AND slots.taken_us = passed.taken_us
RETURNING slots.gate
