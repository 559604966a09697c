-- Children whose rule is met now join their lane, or wait for their time only.
INSERT INTO joining (n, lane, from_state)
SELECT live.n, live.lane, live.state
FROM touched
CROSS JOIN perdure_live AS live ON live.n = touched.child
CROSS JOIN perdure_tasks AS tasks ON tasks.n = live.n
WHERE live.state = 'pending' AND live.gate IS NULL
AND CASE iif(tasks.parents = 0, 'all_done', tasks.rule)
    WHEN 'all_succeeded' THEN live.waits = 0 AND live.bad = live.excused
    WHEN 'all_done' THEN live.waits = 0
    WHEN 'any_succeeded' THEN live.good > 0
    WHEN 'any_failed' THEN live.bad > 0
END
ORDER BY live.n
