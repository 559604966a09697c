-- Jobs run from the first claim on.
UPDATE perdure_jobs AS jobs
SET state = 'running', started_us = coalesce(started_us, :now)
WHERE j IN (SELECT value FROM json_each(:batch)) AND state = 'pending'
