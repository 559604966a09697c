-- The next stretch of ended tasks in some states, last ended first: number and position.
-- Each state is walked along its own part of the index.
-- walks: both ways
SELECT coalesce(json_agg(
    json_build_array(walked.n, walked.finished_us, walked.n) ORDER BY walked.finished_us DESC, walked.n DESC
), '[]')::text
FROM (
    SELECT found.finished_us, found.n
    FROM (SELECT DISTINCT state FROM jsonb_array_elements_text(%(states)s::jsonb) AS listed (state)) AS asked
    CROSS JOIN LATERAL (
        SELECT ends.finished_us, ends.n
        FROM perdure_ends AS ends
        WHERE ends.organization = %(organization)s::text AND ends.state = asked.state
        AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
        ORDER BY ends.finished_us DESC, ends.n DESC
        LIMIT %(stretch)s::bigint
    ) AS found
    ORDER BY found.finished_us DESC, found.n DESC
    LIMIT %(stretch)s::bigint
) AS walked
