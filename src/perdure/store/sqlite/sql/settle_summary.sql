-- What has been staged: the items by place, the moves by lane, and what has to follow.
SELECT json_object(
    'items', json((SELECT json_group_array(json_array(i, state)) FROM settling)),
    'moves', json((
        SELECT json_group_array(json_array(lane, from_state, state, moved))
        FROM (SELECT lane, from_state, state, count(*) AS moved FROM settling GROUP BY lane, from_state, state)
    )),
    'returning', (SELECT count(*) FROM settling WHERE NOT ended),
    'queued', (SELECT count(*) FROM settling WHERE state = 'queued'),
    'gated', json((
        SELECT json_group_array(json_array(settling.n, ended, settling.state))
        FROM settling
        WHERE gated
    )),
    'jobs', EXISTS (SELECT 1 FROM settling WHERE ended AND job IS NOT NULL)
)
