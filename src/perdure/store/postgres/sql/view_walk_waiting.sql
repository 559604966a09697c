-- The next stretch of tasks that wait for their time or for others, newest first: number and position.
-- Whether a state is asked for is decided before any row is read: what is not asked for is not walked.
SELECT coalesce(json_agg(json_build_array(walked.n, walked.n) ORDER BY walked.n DESC), '[]')::text
FROM (
    SELECT live.n
    FROM perdure_live AS live
    WHERE live.organization = %(organization)s::text AND live.state = 'pending' AND live.n < %(before)s::bigint
    AND strpos(%(states)s::text, '"pending"') > 0
    UNION ALL
    SELECT live.n
    FROM perdure_live AS live
    WHERE live.organization = %(organization)s::text AND live.state = 'retrying' AND live.n < %(before)s::bigint
    AND strpos(%(states)s::text, '"retrying"') > 0
    ORDER BY n DESC
    LIMIT %(stretch)s::bigint
) AS walked
