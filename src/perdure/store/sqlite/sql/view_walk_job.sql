-- The next stretch of a job's tasks, newest first: number and position.
-- walks: both ways
SELECT json_group_array(json_array(n, n) ORDER BY n DESC)
FROM (
    SELECT tasks.n
    FROM perdure_jobs AS jobs
    CROSS JOIN perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job ON tasks.job = jobs.j
    WHERE jobs.organization = :organization AND jobs.id = :job AND tasks.n < :before
    ORDER BY tasks.n DESC
    LIMIT :stretch
)
