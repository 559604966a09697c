-- How many tasks of a job are in each unfinished state.
SELECT json_group_object(state, tasks)
FROM (
    SELECT live.state, count(*) AS tasks
    FROM perdure_jobs AS jobs
    CROSS JOIN perdure_live AS live INDEXED BY perdure_live_by_job ON live.job = jobs.j
    WHERE jobs.organization = :organization AND jobs.j = :j
    GROUP BY live.state
)
