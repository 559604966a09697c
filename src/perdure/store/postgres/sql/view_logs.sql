-- A page of a task's log, oldest first, behind a place in it.
SELECT coalesce(json_agg(
    json_build_array(page.fence, page.sequence, page.attempt_id, page.at_us, page.level, page.message, page.dropped)
    ORDER BY page.fence, page.sequence
), '[]')::text
FROM (
    SELECT logs.fence, logs.sequence, logs.attempt_id, logs.at_us, logs.level, logs.message, logs.dropped
    FROM perdure_tasks AS tasks
    JOIN perdure_logs AS logs ON logs.n = tasks.n
    WHERE tasks.organization = %(organization)s::text AND tasks.n = %(n)s::bigint
    AND (logs.fence, logs.sequence) > (%(fence)s::bigint, %(sequence)s::integer)
    ORDER BY logs.fence, logs.sequence
    LIMIT %(count)s::bigint
) AS page
