-- Take back slots of rates whose time has passed, at most :count; returns the gates.
DELETE FROM perdure_slots AS slots
WHERE (gate, n, taken_us) IN (
    SELECT gate, n, taken_us
    FROM perdure_slots AS passed INDEXED BY perdure_slots_by_time
    WHERE free_us IS NOT NULL AND free_us <= :now
    ORDER BY free_us
    LIMIT :count
)
RETURNING gate
