-- How many tasks of a job are in each unfinished state.
SELECT json_group_object(state, tasks)
FROM (
    SELECT live.state, count(*) AS tasks
    FROM jobs
    CROSS JOIN live INDEXED BY live_by_job ON live.job = jobs.j
    WHERE jobs.organization = :organization AND jobs.j = :j
    GROUP BY live.state
)
