-- What goes with a batch of tasks, by lane: ended tasks by state, and attempts.
SELECT json_array(
    json((
        SELECT json_group_array(json_array(lane, state, gone))
        FROM (
            SELECT lane, state, count(*) AS gone
            FROM json_each(:batch) AS gone CROSS JOIN perdure_ends AS ends ON ends.n = gone.value
            GROUP BY lane, state
        )
    )),
    json((
        SELECT json_group_array(json_array(lane, gone))
        FROM (
            SELECT ends.lane, count(*) AS gone
            FROM json_each(:batch) AS gone
            CROSS JOIN perdure_ends AS ends ON ends.n = gone.value
            CROSS JOIN perdure_attempts AS attempts ON attempts.n = gone.value
            GROUP BY ends.lane
        )
    ))
)
