-- The tasks of a job: names and ids.
SELECT coalesce(jsonb_agg(jsonb_build_array(tasks.name, tasks.id) ORDER BY tasks.n), '[]')::text
FROM perdure_jobs AS jobs
JOIN perdure_tasks AS tasks ON tasks.job = jobs.j
WHERE jobs.organization = %(organization)s::text AND jobs.id = %(id)s::text
