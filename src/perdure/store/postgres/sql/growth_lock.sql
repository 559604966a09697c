-- The tasks of a batch: number, state, how many parents they wait for. Locks them, those that have ended first, and before
-- them what a cascade may just be dealing with; each list is taken whole before the next, in ascending order. From here to
-- the commit none of them ends, runs again or is counted down. One that moved while its row was waited for has no state.
WITH asked AS MATERIALIZED (
    SELECT item.value::bigint AS n FROM jsonb_array_elements_text(%(batch)s::jsonb) AS item (value)
),
followed AS MATERIALIZED (
    SELECT frontier.n
    FROM asked
    JOIN perdure_frontier AS frontier ON frontier.n = ANY (ARRAY[asked.n])
    ORDER BY frontier.n
    FOR UPDATE OF frontier
),
ended AS MATERIALIZED (
    SELECT ends.n, ends.state
    FROM asked
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[asked.n])
    WHERE (SELECT count(*) FROM followed) >= 0
    ORDER BY ends.n
    FOR SHARE OF ends
),
living AS MATERIALIZED (
    SELECT live.n, live.state, live.waits
    FROM asked
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[asked.n])
    WHERE (SELECT count(*) FROM ended) >= 0
    ORDER BY live.n
    FOR UPDATE OF live
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    asked.n, coalesce(living.state, ended.state), coalesce(living.waits, 0)
)), '[]')::text
FROM asked
LEFT JOIN living ON living.n = asked.n
LEFT JOIN ended ON ended.n = asked.n
