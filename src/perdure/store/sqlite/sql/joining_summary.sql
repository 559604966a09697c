-- How many tasks join now and how many wait for their time, by lane.
SELECT json_group_array(json_array(lane, from_state, due, joined))
FROM (
    SELECT joining.lane, joining.from_state, live.due_us <= :now AS due, count(*) AS joined
    FROM joining
    CROSS JOIN perdure_live AS live ON live.n = joining.n
    GROUP BY joining.lane, joining.from_state, due
)
