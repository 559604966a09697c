-- Write the live rows of new tasks: number, state, place in line, due. The row of VALUES is repeated for each of them.
INSERT INTO perdure_live (n, organization, lane, job, waits, state, seq, due_us, expires_us, queued_us)
SELECT
    tasks.n, tasks.organization, tasks.lane, tasks.job, tasks.parents, column2, column3, column4,
    ?1 + tasks.ttl_us, CASE column2 WHEN 'queued' THEN ?1 END
FROM (VALUES (?, ?, ?, ?))
CROSS JOIN perdure_tasks AS tasks ON tasks.n = column1
