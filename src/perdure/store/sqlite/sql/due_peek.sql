-- Whether a task is due that waits for its time only, or a slot of a rate is free again.
SELECT EXISTS (
    SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_due
    WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL AND due_us <= :now
) OR EXISTS (
    SELECT 1 FROM perdure_slots AS slots INDEXED BY perdure_slots_by_time
    WHERE free_us IS NOT NULL AND free_us <= :now
)
