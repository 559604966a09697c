-- Remove the history of jobs that have gone.
DELETE FROM perdure_events AS events
WHERE job IN (SELECT gone.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value))
AND NOT EXISTS (SELECT 1 FROM perdure_jobs AS jobs WHERE jobs.j = events.job)
