-- Those tasks of a job that have one of some names: name, number, id, and what they were asked for as.
SELECT json_group_array(json_array(name, n, id, request_hash))
FROM perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job
WHERE job = :job AND name IN (SELECT value FROM json_each(:batch))
