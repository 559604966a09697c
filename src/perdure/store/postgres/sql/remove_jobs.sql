-- Remove jobs whose tasks have all gone.
DELETE FROM perdure_jobs AS jobs
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE jobs.j = ANY (ARRAY[gone.value::bigint]) AND jobs.open = 0
AND NOT EXISTS (SELECT 1 FROM perdure_tasks AS tasks WHERE tasks.job = jobs.j)
