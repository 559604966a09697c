-- The next stretch of tasks that wait for their time or for others, newest first: number and position.
-- Whether a state is asked for is a constant of the statement: what is not asked for is not walked.
-- walks: both ways
SELECT json_group_array(json_array(n, n) ORDER BY n DESC)
FROM (
    SELECT n
    FROM perdure_live AS live INDEXED BY perdure_live_waiting
    WHERE organization = :organization AND state = 'pending' AND state IN ('pending', 'retrying') AND n < :before
    AND instr(:states, '"pending"')
    UNION ALL
    SELECT n
    FROM perdure_live AS live INDEXED BY perdure_live_waiting
    WHERE organization = :organization AND state = 'retrying' AND state IN ('pending', 'retrying') AND n < :before
    AND instr(:states, '"retrying"')
    ORDER BY n DESC
    LIMIT :stretch
)
