-- What fires of a schedule have made that is open, the oldest first.
SELECT json_group_array(json_array(task_id, job_id) ORDER BY instant_us)
FROM (
    SELECT instant_us, task_id, job_id
    FROM perdure_fires AS fires
    WHERE organization = :organization AND schedule = :schedule AND open = 1
    ORDER BY instant_us
    LIMIT :count
)
