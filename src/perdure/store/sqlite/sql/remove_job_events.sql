-- Remove the history of jobs that have gone.
DELETE FROM events
WHERE job IN (SELECT value FROM json_each(:batch)) AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.j = events.job)
