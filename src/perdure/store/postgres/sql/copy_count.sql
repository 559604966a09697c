-- Count what was copied.
INSERT INTO perdure_counts (lane, state, count)
SELECT live.lane, live.state, count(*) FROM perdure_live AS live GROUP BY live.lane, live.state
UNION ALL
SELECT ends.lane, ends.state, count(*) FROM perdure_ends AS ends GROUP BY ends.lane, ends.state
UNION ALL
SELECT tasks.lane, 'attempts', count(*)
FROM perdure_attempts AS attempts
JOIN perdure_tasks AS tasks ON tasks.n = attempts.n
GROUP BY tasks.lane
