-- The next stretch of tasks that wait for their time or for others, newest first: number and position.
-- Each state is walked along its own part of the index.
-- walks: both ways
SELECT coalesce(json_agg(json_build_array(walked.n, walked.n) ORDER BY walked.n DESC), '[]')::text
FROM (
    SELECT found.n
    FROM (SELECT DISTINCT state FROM jsonb_array_elements_text(%(states)s::jsonb) AS listed (state)) AS asked
    CROSS JOIN LATERAL (
        SELECT live.n
        FROM perdure_live AS live
        WHERE live.organization = %(organization)s::text AND live.state = asked.state
        AND live.state IN ('pending', 'retrying') AND live.n < %(before)s::bigint
        ORDER BY live.n DESC
        LIMIT %(stretch)s::bigint
    ) AS found
    ORDER BY found.n DESC
    LIMIT %(stretch)s::bigint
) AS walked
