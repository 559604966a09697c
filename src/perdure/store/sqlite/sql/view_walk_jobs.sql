-- The next stretch of jobs in some states, newest first.
SELECT json_group_array(j ORDER BY j DESC)
FROM (
    SELECT j
    FROM jobs INDEXED BY jobs_by_state
    WHERE organization = :organization AND state = 'pending' AND j < :before
    AND 'pending' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT j
    FROM jobs INDEXED BY jobs_by_state
    WHERE organization = :organization AND state = 'running' AND j < :before
    AND 'running' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT j
    FROM jobs INDEXED BY jobs_by_state
    WHERE organization = :organization AND state = 'succeeded' AND j < :before
    AND 'succeeded' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT j
    FROM jobs INDEXED BY jobs_by_state
    WHERE organization = :organization AND state = 'partially_succeeded' AND j < :before
    AND 'partially_succeeded' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT j
    FROM jobs INDEXED BY jobs_by_state
    WHERE organization = :organization AND state = 'failed' AND j < :before
    AND 'failed' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT j
    FROM jobs INDEXED BY jobs_by_state
    WHERE organization = :organization AND state = 'cancelled' AND j < :before
    AND 'cancelled' IN (SELECT value FROM json_each(:states))
    ORDER BY j DESC
    LIMIT :stretch
)
