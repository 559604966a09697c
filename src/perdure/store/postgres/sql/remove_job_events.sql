-- Remove the history of jobs that have gone.
DELETE FROM perdure_events AS events
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE events.job = ANY (ARRAY[gone.value::bigint]) AND events.job IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM perdure_jobs AS jobs WHERE jobs.j = events.job)
