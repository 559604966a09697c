-- How a job stands: number, open tasks, why it stops, initiator.
SELECT jsonb_build_array(jobs.j, jobs.open, jobs.stopping, jobs.initiator)::text
FROM perdure_jobs AS jobs
WHERE jobs.organization = %(organization)s::text AND jobs.id = %(id)s::text
