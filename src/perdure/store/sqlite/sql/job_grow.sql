-- Count tasks that were added into their job.
UPDATE perdure_jobs AS jobs
SET total = total + :count, open = open + :count
WHERE j = :job AND open > 0
