-- Tasks without a job that ended long enough ago, oldest first.
SELECT json_group_array(n)
FROM (SELECT n FROM ends INDEXED BY ends_alone WHERE job IS NULL AND finished_us < :before ORDER BY finished_us LIMIT :count)
