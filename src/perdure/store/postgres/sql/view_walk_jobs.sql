-- The next stretch of jobs in some states, newest first.
-- Each state is walked along its own part of the index.
-- walks: both ways
SELECT coalesce(json_agg(walked.j ORDER BY walked.j DESC), '[]')::text
FROM (
    SELECT found.j
    FROM (SELECT DISTINCT state FROM jsonb_array_elements_text(%(states)s::jsonb) AS listed (state)) AS asked
    CROSS JOIN LATERAL (
        SELECT jobs.j
        FROM perdure_jobs AS jobs
        WHERE jobs.organization = %(organization)s::text AND jobs.state = asked.state
        AND jobs.j < %(before)s::bigint
        ORDER BY jobs.j DESC
        LIMIT %(stretch)s::bigint
    ) AS found
    ORDER BY found.j DESC
    LIMIT %(stretch)s::bigint
) AS walked
