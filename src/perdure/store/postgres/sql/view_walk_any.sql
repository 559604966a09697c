-- The next stretch of all tasks, newest id first: number and position.
-- walks: both ways
SELECT coalesce(json_agg(json_build_array(walked.n, walked.id) ORDER BY walked.id DESC), '[]')::text
FROM (
    SELECT tasks.n, tasks.id
    FROM perdure_tasks AS tasks
    WHERE tasks.organization = %(organization)s::text AND tasks.id < %(before)s::text
    ORDER BY tasks.id DESC
    LIMIT %(stretch)s::bigint
) AS walked
