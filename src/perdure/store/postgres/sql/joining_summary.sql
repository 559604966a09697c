-- How many tasks join now and how many wait for their time, by lane: lane, state, whether they are due, whether they wait at a
-- gate, how many, and how many of those that join have gates. What waits at a gate was due by another transaction's time.
SELECT coalesce(jsonb_agg(jsonb_build_array(lane, from_state, due, waiting, joined, gated)), '[]')::text
FROM (
    SELECT
        joining.lane, joining.from_state, (live.due_us <= %(due)s::bigint OR live.gate IS NOT NULL) AS due,
        live.gate IS NOT NULL AS waiting, count(*) AS joined, sum(live.gated) FILTER (WHERE live.due_us <= %(due)s::bigint OR live.gate IS NOT NULL) AS gated
    FROM jsonb_to_recordset(%(joining)s::jsonb) AS joining (n bigint, lane bigint, from_state text)
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[joining.n])
    GROUP BY joining.lane, joining.from_state, due, waiting
) AS summary
