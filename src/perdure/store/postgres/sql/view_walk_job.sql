-- The next stretch of a job's tasks, newest first: number and position.
-- walks: both ways
SELECT coalesce(json_agg(json_build_array(walked.n, walked.n) ORDER BY walked.n DESC), '[]')::text
FROM (
    SELECT tasks.n
    FROM perdure_tasks AS tasks
    WHERE tasks.job = (
        SELECT jobs.j FROM perdure_jobs AS jobs
        WHERE jobs.organization = %(organization)s::text AND jobs.id = %(job)s::text
    )
    AND tasks.n < %(before)s::bigint
    ORDER BY tasks.n DESC
    LIMIT %(stretch)s::bigint
) AS walked
