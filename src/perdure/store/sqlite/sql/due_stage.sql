-- Stage tasks that are due, those that have waited longest first.
INSERT INTO joining (n, lane, from_state)
SELECT n, lane, state
FROM perdure_live AS live INDEXED BY perdure_live_due
WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL AND due_us <= :now
ORDER BY due_us
LIMIT :count
