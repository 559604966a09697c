-- Write the live rows of the newest tasks, which wait for nothing and join their lanes in order.
INSERT INTO perdure_live (n, organization, lane, job, state, seq, due_us, expires_us, queued_us)
SELECT n, organization, lane, job, 'queued', :before + n - :first + 1, :now, :now + ttl_us, :now
FROM perdure_tasks AS tasks
WHERE n >= :first
