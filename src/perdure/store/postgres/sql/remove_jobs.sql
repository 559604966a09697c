-- Remove jobs whose tasks have all gone.
DELETE FROM perdure_jobs AS jobs
WHERE j IN (SELECT gone.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)) AND open = 0
AND NOT EXISTS (SELECT 1 FROM perdure_tasks AS tasks WHERE tasks.job = jobs.j)
