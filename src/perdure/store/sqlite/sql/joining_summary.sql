-- How many tasks join now and how many wait for their time, by lane: lane, state, whether they are due, whether they wait at a
-- gate, how many, and how many of those that join have gates. What waits at a gate was due by another transaction's time.
SELECT json_group_array(json_array(lane, from_state, due, waiting, joined, gated))
FROM (
    SELECT
        joining.lane, joining.from_state, (live.due_us <= :due OR live.gate IS NOT NULL) AS due,
        live.gate IS NOT NULL AS waiting, count(*) AS joined,
        sum(live.gated AND (live.due_us <= :due OR live.gate IS NOT NULL)) AS gated
    FROM joining
    CROSS JOIN perdure_live AS live ON live.n = joining.n
    GROUP BY joining.lane, joining.from_state, due, waiting
)
