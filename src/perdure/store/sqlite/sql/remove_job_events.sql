-- Remove the history of jobs that have gone.
DELETE FROM perdure_events AS events
WHERE job IN (SELECT value FROM json_each(:batch)) AND NOT EXISTS (SELECT 1 FROM perdure_jobs AS jobs WHERE jobs.j = events.job)
