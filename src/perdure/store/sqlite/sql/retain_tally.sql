-- What goes with a batch of tasks: ended tasks by lane and state, attempts, results.
SELECT json_array(
    json((
        SELECT json_group_array(json_array(lane, state, gone))
        FROM (
            SELECT lane, state, count(*) AS gone
            FROM json_each(:batch) AS gone CROSS JOIN ends ON ends.n = gone.value
            GROUP BY lane, state
        )
    )),
    (SELECT count(*) FROM json_each(:batch) AS gone CROSS JOIN attempts ON attempts.n = gone.value),
    (SELECT count(*) FROM json_each(:batch) AS gone CROSS JOIN ends ON ends.n = gone.value WHERE result IS NOT NULL)
)
