-- What goes with a batch of tasks, by lane: ended tasks by state, and attempts. Their ends are locked already.
WITH gone AS MATERIALIZED (
    SELECT ends.n, ends.lane, ends.state
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS item (value)
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[item.value::bigint])
)
SELECT jsonb_build_array(
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(tally.lane, tally.state, tally.count)), '[]')
        FROM (SELECT gone.lane, gone.state, count(*) AS count FROM gone GROUP BY gone.lane, gone.state) AS tally
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(tally.lane, tally.count)), '[]')
        FROM (
            SELECT gone.lane, count(*) AS count
            FROM gone
            JOIN perdure_attempts AS attempts ON attempts.n = ANY (ARRAY[gone.n])
            GROUP BY gone.lane
        ) AS tally
    )
)::text
