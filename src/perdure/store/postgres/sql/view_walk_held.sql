-- The next stretch of leased tasks, newest first: number and position. All are sorted: workers' capacity bounds them.
WITH held AS MATERIALIZED (
    SELECT live.n
    FROM perdure_live AS live
    WHERE live.attempt_id IS NOT NULL AND live.organization = %(organization)s::text
)
SELECT coalesce(json_agg(json_build_array(walked.n, walked.n) ORDER BY walked.n DESC), '[]')::text
FROM (
    SELECT held.n
    FROM held
    WHERE held.n < %(before)s::bigint
    ORDER BY held.n DESC
    LIMIT %(stretch)s::bigint
) AS walked
