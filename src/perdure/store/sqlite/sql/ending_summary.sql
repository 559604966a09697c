-- The waiting tasks that end, by lane and state.
SELECT json_object(
    'moves', json((
        SELECT json_group_array(json_array(lane, from_state, state, moved))
        FROM (SELECT lane, from_state, state, count(*) AS moved FROM ending GROUP BY lane, from_state, state)
    )),
    'gated', json((
        SELECT json_group_array(json_array(ending.n, 1))
        FROM ending
        CROSS JOIN perdure_live AS live ON live.n = ending.n
        WHERE live.gated = 1
    )),
    'tasks', (SELECT count(*) FROM ending),
    'jobs', EXISTS (SELECT 1 FROM ending WHERE job IS NOT NULL)
)
