-- The next stretch of jobs in some states, newest first.
-- Whether a state is asked for is decided before any row is read: what is not asked for is not walked.
SELECT coalesce(json_agg(walked.j ORDER BY walked.j DESC), '[]')::text
FROM (
    SELECT jobs.j
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.state = 'pending'
    AND jobs.j < %(before)s::bigint AND strpos(%(states)s::text, '"pending"') > 0
    UNION ALL
    SELECT jobs.j
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.state = 'running'
    AND jobs.j < %(before)s::bigint AND strpos(%(states)s::text, '"running"') > 0
    UNION ALL
    SELECT jobs.j
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.state = 'succeeded'
    AND jobs.j < %(before)s::bigint AND strpos(%(states)s::text, '"succeeded"') > 0
    UNION ALL
    SELECT jobs.j
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.state = 'partially_succeeded'
    AND jobs.j < %(before)s::bigint AND strpos(%(states)s::text, '"partially_succeeded"') > 0
    UNION ALL
    SELECT jobs.j
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.state = 'failed'
    AND jobs.j < %(before)s::bigint AND strpos(%(states)s::text, '"failed"') > 0
    UNION ALL
    SELECT jobs.j
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.state = 'cancelled'
    AND jobs.j < %(before)s::bigint AND strpos(%(states)s::text, '"cancelled"') > 0
    ORDER BY j DESC
    LIMIT %(stretch)s::bigint
) AS walked
