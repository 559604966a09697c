-- The lanes and jobs that a batch of claims belongs to.
SELECT json_array(
    json((
        SELECT json_group_array(json_array(lane, claimed))
        FROM (
            SELECT lane, count(*) AS claimed
            FROM json_each(:batch) AS picked CROSS JOIN live ON live.n = picked.value ->> 0
            GROUP BY lane
        )
    )),
    json((
        SELECT json_group_array(DISTINCT job)
        FROM json_each(:batch) AS picked CROSS JOIN live ON live.n = picked.value ->> 0
        WHERE job IS NOT NULL
    ))
)
