-- The next stretch of all tasks, newest id first: number and position.
-- walks: both ways
SELECT json_group_array(json_array(n, id) ORDER BY id DESC)
FROM (
    SELECT n, id
    FROM perdure_tasks AS tasks
    WHERE organization = :organization AND id < :before
    ORDER BY id DESC
    LIMIT :stretch
)
