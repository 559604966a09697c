-- Children whose rule is met now join their lane, or wait for their time only.
-- stages: joining
WITH met AS (
    SELECT
        row_number() OVER (ORDER BY touched.child NULLS LAST) + jsonb_array_length(%(joining)s::jsonb) AS position,
        live.n, live.lane, live.state AS from_state
    FROM jsonb_to_recordset(%(touched)s::jsonb) AS touched (child bigint)
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[touched.child])
    JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[live.n])
    WHERE coalesce(live.state, '') = 'pending' AND live.gate IS NULL
    AND CASE CASE WHEN tasks.parents = 0 THEN 'all_done' ELSE tasks.rule END
        WHEN 'all_succeeded' THEN live.waits = 0 AND live.bad = live.excused
        WHEN 'all_done' THEN live.waits = 0
        WHEN 'any_succeeded' THEN live.good > 0
        WHEN 'any_failed' THEN live.bad > 0
    END
)
SELECT jsonb_agg(to_jsonb(met) ORDER BY met.position)::text FROM met
