-- Tasks without a job that ended long enough ago: by lane and state, oldest first.
SELECT json_group_array(n)
FROM (
    SELECT ends.n
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_ends AS ends INDEXED BY perdure_ends_alone ON ends.lane = asked.value ->> 0 AND ends.state = asked.value ->> 1
    WHERE ends.job IS NULL AND ends.finished_us < asked.value ->> 2
    LIMIT :count
)
