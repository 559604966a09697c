-- The next stretch of ended tasks in some states, last ended first: number and position.
-- Whether a state is asked for is a constant of the statement: what is not asked for is not walked.
-- walks: both ways
SELECT json_group_array(json_array(n, finished_us, n) ORDER BY finished_us DESC, n DESC)
FROM (
    SELECT finished_us, n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_by_state
    WHERE organization = :organization AND state = 'succeeded' AND (finished_us, n) < (:before_us, :before)
    AND instr(:states, '"succeeded"')
    UNION ALL
    SELECT finished_us, n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_by_state
    WHERE organization = :organization AND state = 'partially_succeeded' AND (finished_us, n) < (:before_us, :before)
    AND instr(:states, '"partially_succeeded"')
    UNION ALL
    SELECT finished_us, n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_by_state
    WHERE organization = :organization AND state = 'failed' AND (finished_us, n) < (:before_us, :before)
    AND instr(:states, '"failed"')
    UNION ALL
    SELECT finished_us, n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_by_state
    WHERE organization = :organization AND state = 'dead_lettered' AND (finished_us, n) < (:before_us, :before)
    AND instr(:states, '"dead_lettered"')
    UNION ALL
    SELECT finished_us, n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_by_state
    WHERE organization = :organization AND state = 'cancelled' AND (finished_us, n) < (:before_us, :before)
    AND instr(:states, '"cancelled"')
    UNION ALL
    SELECT finished_us, n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_by_state
    WHERE organization = :organization AND state = 'expired' AND (finished_us, n) < (:before_us, :before)
    AND instr(:states, '"expired"')
    ORDER BY finished_us DESC, n DESC
    LIMIT :stretch
)
