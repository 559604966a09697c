-- The next stretch of tasks that wait for their time or for others, newest first: number and position.
SELECT json_group_array(json_array(n, n) ORDER BY n DESC)
FROM (
    SELECT n
    FROM live INDEXED BY live_waiting
    WHERE organization = :organization AND state = 'pending' AND state IN ('pending', 'retrying') AND n < :before
    AND 'pending' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT n
    FROM live INDEXED BY live_waiting
    WHERE organization = :organization AND state = 'retrying' AND state IN ('pending', 'retrying') AND n < :before
    AND 'retrying' IN (SELECT value FROM json_each(:states))
    ORDER BY n DESC
    LIMIT :stretch
)
