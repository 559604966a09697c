-- Children whose rule can never be met any more end.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor)
SELECT
    live.n, live.lane, live.job, live.state, 'cancelled',
    iif(tasks.rule = 'all_succeeded', 'upstream_failed', 'trigger_unmet'), 'system'
FROM touched
CROSS JOIN perdure_live AS live ON live.n = touched.child
CROSS JOIN perdure_tasks AS tasks ON tasks.n = live.n
WHERE live.state = 'pending' AND live.gate IS NULL AND tasks.parents > 0
AND CASE tasks.rule
    WHEN 'all_succeeded' THEN live.bad > live.excused
    WHEN 'any_succeeded' THEN live.waits = 0 AND live.good = 0
    WHEN 'any_failed' THEN live.waits = 0 AND live.bad = 0
END
