-- What has been staged: the items by place, the moves by lane, what has to follow, and the breakers of
-- their kinds.
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
    'jobs', EXISTS (SELECT 1 FROM settling WHERE ended AND job IS NOT NULL),
    'breakers', CASE WHEN EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_of_breakers
        WHERE definitions.type = 'kind' AND definitions.document ->> '$.breaker' IS NOT NULL
    ) THEN json((
        SELECT json_group_array(json_array(
            settling.i, lanes.organization, lanes.kind, settling.leased_us, definitions.document ->> '$.breaker'
        ))
        FROM settling
        CROSS JOIN perdure_lanes AS lanes ON lanes.lane = settling.lane
        CROSS JOIN perdure_definitions AS definitions
            ON definitions.organization = lanes.organization AND definitions.type = 'kind' AND definitions.name = lanes.kind
        WHERE definitions.document ->> '$.breaker' IS NOT NULL
    )) END
)
