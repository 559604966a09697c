-- Stage new tasks that have gates and wait for nothing else.
INSERT INTO joining (n, lane, from_state)
SELECT live.n, live.lane, live.state
FROM json_each(:batch) AS fresh
CROSS JOIN perdure_live AS live ON live.n = fresh.value
WHERE live.state = 'pending' AND live.waits = 0 AND live.gate IS NULL AND live.due_us <= :now
ORDER BY live.n
