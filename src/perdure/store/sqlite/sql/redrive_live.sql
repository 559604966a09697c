-- Tasks live again, as the next generation, with fresh budgets, deadline and TTL; the fence goes on.
INSERT INTO perdure_live (
    n, organization, lane, job, state, due_us, expires_us, generation, fence, last_error, gated
)
SELECT
    ends.n, ends.organization, ends.lane, ends.job, 'pending', :now, :now + tasks.ttl_us, ends.generation + 1,
    ends.fence, ends.error, tasks.options -> '$.gates' IS NOT NULL
FROM json_each(:batch) AS redriven
CROSS JOIN perdure_ends AS ends ON ends.n = redriven.value
CROSS JOIN perdure_tasks AS tasks ON tasks.n = ends.n
WHERE ends.state IN ('failed', 'dead_lettered', 'expired')
OR (ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet'))
