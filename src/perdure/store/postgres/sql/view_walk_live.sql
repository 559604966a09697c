-- The next stretch of unfinished tasks, newest first: number (none where it is another organization's) and position.
-- walks: both ways
SELECT coalesce(json_agg(
    json_build_array(
        CASE WHEN walked.organization = %(organization)s::text THEN walked.n END, walked.n
    ) ORDER BY walked.n DESC
), '[]')::text
FROM (
    SELECT live.n, live.organization
    FROM perdure_live AS live
    WHERE live.n < %(before)s::bigint
    ORDER BY live.n DESC
    LIMIT %(stretch)s::bigint
) AS walked
