-- The number of a job by its id.
SELECT jobs.j
FROM perdure_jobs AS jobs
WHERE jobs.organization = %(organization)s::text AND jobs.id = %(job)s::text
