-- The tasks of a job: names and ids.
SELECT json_group_array(json_array(tasks.name, tasks.id) ORDER BY tasks.n)
FROM perdure_jobs AS jobs
CROSS JOIN perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job ON tasks.job = jobs.j
WHERE jobs.organization = :organization AND jobs.id = :id
