-- When the next task is due that waits for its time only.
SELECT min(due_us) FROM perdure_live AS live
WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL AND due_us >= %(since)s::bigint
