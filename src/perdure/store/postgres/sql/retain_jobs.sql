-- Jobs that ended long enough ago: by state, oldest first. Locks them; what another run has is left to it.
SELECT coalesce(jsonb_agg(going.j), '[]')::text
FROM (
    SELECT oldest.j
    FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
    CROSS JOIN LATERAL (
        SELECT jobs.j
        FROM perdure_jobs AS jobs
        WHERE jobs.state = asked.value ->> 0 AND jobs.finished_us IS NOT NULL
        AND jobs.finished_us < (asked.value ->> 1)::bigint
        ORDER BY jobs.finished_us
        LIMIT %(count)s::bigint
        FOR UPDATE SKIP LOCKED
    ) AS oldest
    LIMIT %(count)s::bigint
) AS going
