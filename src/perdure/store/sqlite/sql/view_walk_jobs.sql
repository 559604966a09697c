-- The next stretch of jobs in some states, newest first.
-- Whether a state is asked for is a constant of the statement: what is not asked for is not walked.
-- walks: both ways
SELECT json_group_array(j ORDER BY j DESC)
FROM (
    SELECT j
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_by_state
    WHERE organization = :organization AND state = 'pending' AND j < :before
    AND instr(:states, '"pending"')
    UNION ALL
    SELECT j
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_by_state
    WHERE organization = :organization AND state = 'running' AND j < :before
    AND instr(:states, '"running"')
    UNION ALL
    SELECT j
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_by_state
    WHERE organization = :organization AND state = 'succeeded' AND j < :before
    AND instr(:states, '"succeeded"')
    UNION ALL
    SELECT j
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_by_state
    WHERE organization = :organization AND state = 'partially_succeeded' AND j < :before
    AND instr(:states, '"partially_succeeded"')
    UNION ALL
    SELECT j
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_by_state
    WHERE organization = :organization AND state = 'failed' AND j < :before
    AND instr(:states, '"failed"')
    UNION ALL
    SELECT j
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_by_state
    WHERE organization = :organization AND state = 'cancelled' AND j < :before
    AND instr(:states, '"cancelled"')
    ORDER BY j DESC
    LIMIT :stretch
)
