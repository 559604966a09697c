-- A page of a task's log, oldest first, behind a place in it.
SELECT json_group_array(json_array(fence, sequence, attempt_id, at_us, level, message, dropped) ORDER BY fence, sequence)
FROM (
    SELECT logs.fence, logs.sequence, logs.attempt_id, logs.at_us, logs.level, logs.message, logs.dropped
    FROM perdure_tasks AS tasks
    CROSS JOIN perdure_logs AS logs ON logs.n = tasks.n
    WHERE tasks.organization = :organization AND tasks.n = :n AND (logs.fence, logs.sequence) > (:fence, :sequence)
    ORDER BY logs.fence, logs.sequence
    LIMIT :count
)
