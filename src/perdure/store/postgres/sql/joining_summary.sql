-- How many tasks join now and how many wait for their time, by lane.
SELECT coalesce(jsonb_agg(jsonb_build_array(lane, from_state, due, joined)), '[]')::text
FROM (
    SELECT joining.lane, joining.from_state, live.due_us <= %(now)s::bigint AS due, count(*) AS joined
    FROM jsonb_to_recordset(%(joining)s::jsonb) AS joining (n bigint, lane bigint, from_state text)
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[joining.n])
    GROUP BY joining.lane, joining.from_state, due
) AS summary
