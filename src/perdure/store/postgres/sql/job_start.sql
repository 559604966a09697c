-- Jobs run from the first claim on. Their state is looked at in the row: no index that begins with it may seem short.
UPDATE perdure_jobs AS jobs
SET state = 'running', started_us = coalesce(started_us, greatest(%(now)s::bigint, created_us))
FROM (
    SELECT found.j
    FROM (SELECT DISTINCT value::bigint AS j FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)) AS asked
    CROSS JOIN LATERAL (
        SELECT j FROM perdure_jobs AS jobs WHERE jobs.j >= asked.j AND jobs.j <= asked.j ORDER BY jobs.j LIMIT 1
    ) AS found
    ORDER BY found.j
) AS started
WHERE jobs.j = ANY (ARRAY[started.j]) AND jobs.state || '' = 'pending'
