-- What fires of a schedule have made that is open, the oldest first.
SELECT coalesce(jsonb_agg(jsonb_build_array(task_id, job_id) ORDER BY instant_us), '[]')::text
FROM (
    SELECT instant_us, task_id, job_id
    FROM perdure_fires AS fires
    WHERE organization = %(organization)s::text AND schedule = %(schedule)s::text AND open
    ORDER BY instant_us
    LIMIT %(count)s::bigint
) AS open_fires
