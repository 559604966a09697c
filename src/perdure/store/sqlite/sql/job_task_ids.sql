-- The tasks of a job: names and ids.
SELECT json_group_array(json_array(tasks.name, tasks.id) ORDER BY tasks.n)
FROM jobs
CROSS JOIN tasks INDEXED BY tasks_by_job ON tasks.job = jobs.j
WHERE jobs.organization = :organization AND jobs.id = :id
