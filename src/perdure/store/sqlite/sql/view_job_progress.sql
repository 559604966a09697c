-- What the handlers of a job's tasks told of their items: how many are done, and of how many, where that was told.
SELECT json_array(sum(progress.done), sum(progress.total))
FROM perdure_jobs AS jobs
CROSS JOIN perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job ON tasks.job = jobs.j
CROSS JOIN perdure_progress AS progress ON progress.n = tasks.n
WHERE jobs.organization = :organization AND jobs.j = :j
