-- How a job stands: number, state, open tasks, why it stops, initiator. Locks it.
WITH looked AS (
    SELECT jobs.j, jobs.state, jobs.open, jobs.stopping, jobs.initiator
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.id = %(id)s::text
    FOR UPDATE
)
SELECT jsonb_build_array(j, state, open, stopping, initiator)::text
FROM looked
