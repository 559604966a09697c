-- Remove jobs whose tasks have all gone.
DELETE FROM perdure_jobs AS jobs
WHERE j IN (SELECT value FROM json_each(:batch)) AND open = 0
AND NOT EXISTS (SELECT 1 FROM perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job WHERE tasks.job = jobs.j)
