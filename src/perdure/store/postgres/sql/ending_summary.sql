-- The waiting tasks that end, by lane and state.
WITH ending AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(ending)s::jsonb) AS ending (n bigint, lane bigint, job bigint, from_state text, state text)
)
SELECT jsonb_build_object(
    'moves', (
        SELECT coalesce(jsonb_agg(jsonb_build_array(lane, from_state, state, moved)), '[]')
        FROM (SELECT lane, from_state, state, count(*) AS moved FROM ending GROUP BY lane, from_state, state) AS moves
    ),
    'gated', (
        SELECT coalesce(jsonb_agg(jsonb_build_array(live.n, 1)), '[]')
        FROM ending
        JOIN perdure_live AS live ON live.n = ANY (ARRAY[ending.n])
        WHERE live.gated = 1
    ),
    'tasks', (SELECT count(*) FROM ending),
    'jobs', EXISTS (SELECT 1 FROM ending WHERE job IS NOT NULL)
)::text
