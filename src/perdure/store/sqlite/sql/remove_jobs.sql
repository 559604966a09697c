-- Remove jobs whose tasks have all gone.
DELETE FROM jobs
WHERE j IN (SELECT value FROM json_each(:batch)) AND open = 0
AND NOT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_by_job WHERE tasks.job = jobs.j)
