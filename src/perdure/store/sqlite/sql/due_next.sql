-- When the next task is due that waits for its time only.
SELECT min(due_us) FROM perdure_live AS live INDEXED BY perdure_live_due WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL
