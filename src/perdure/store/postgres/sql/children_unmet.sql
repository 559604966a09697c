-- Children whose rule can never be met any more end.
-- stages: ending
WITH unmet AS (
    SELECT
        live.n, live.lane, live.job, live.state AS from_state, 'cancelled' AS state,
        CASE WHEN tasks.rule = 'all_succeeded' THEN 'upstream_failed' ELSE 'trigger_unmet' END AS reason,
        'system' AS actor
    FROM jsonb_to_recordset(%(touched)s::jsonb) AS touched (child bigint)
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[touched.child])
    JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[live.n])
    WHERE coalesce(live.state, '') = 'pending' AND live.gate IS NULL AND tasks.parents > 0
    AND CASE tasks.rule
        WHEN 'all_succeeded' THEN live.bad > live.excused
        WHEN 'any_succeeded' THEN live.waits = 0 AND live.good = 0
        WHEN 'any_failed' THEN live.waits = 0 AND live.bad = 0
    END
    AND NOT EXISTS (
        SELECT 1 FROM jsonb_to_recordset(%(ending)s::jsonb) AS ending (n bigint) WHERE ending.n = touched.child
    )
)
SELECT jsonb_agg(to_jsonb(unmet))::text FROM unmet
