-- The next stretch of ended tasks in some states, last ended first: number and position.
SELECT json_group_array(json_array(n, finished_us, n) ORDER BY finished_us DESC, n DESC)
FROM (
    SELECT finished_us, n
    FROM ends INDEXED BY ends_by_state
    WHERE organization = :organization AND state = 'succeeded' AND (finished_us, n) < (:before_us, :before)
    AND 'succeeded' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT finished_us, n
    FROM ends INDEXED BY ends_by_state
    WHERE organization = :organization AND state = 'partially_succeeded' AND (finished_us, n) < (:before_us, :before)
    AND 'partially_succeeded' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT finished_us, n
    FROM ends INDEXED BY ends_by_state
    WHERE organization = :organization AND state = 'failed' AND (finished_us, n) < (:before_us, :before)
    AND 'failed' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT finished_us, n
    FROM ends INDEXED BY ends_by_state
    WHERE organization = :organization AND state = 'dead_lettered' AND (finished_us, n) < (:before_us, :before)
    AND 'dead_lettered' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT finished_us, n
    FROM ends INDEXED BY ends_by_state
    WHERE organization = :organization AND state = 'cancelled' AND (finished_us, n) < (:before_us, :before)
    AND 'cancelled' IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT finished_us, n
    FROM ends INDEXED BY ends_by_state
    WHERE organization = :organization AND state = 'expired' AND (finished_us, n) < (:before_us, :before)
    AND 'expired' IN (SELECT value FROM json_each(:states))
    ORDER BY finished_us DESC, n DESC
    LIMIT :stretch
)
