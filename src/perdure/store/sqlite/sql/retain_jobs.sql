-- Jobs that ended long enough ago: by state, oldest first.
SELECT json_group_array(j)
FROM (
    SELECT jobs.j
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_jobs AS jobs INDEXED BY perdure_jobs_finished ON jobs.state = asked.value ->> 0
    WHERE jobs.finished_us IS NOT NULL AND jobs.finished_us < asked.value ->> 1
    LIMIT :count
)
