-- Tasks of jobs that may go. Locks their ends; what is being run again is left, and its job with it.
WITH going AS (
    SELECT tasks.n
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
    JOIN perdure_tasks AS tasks ON tasks.job = ANY (ARRAY[gone.value::bigint]) AND tasks.job IS NOT NULL
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[tasks.n])
    LIMIT %(count)s::bigint
    FOR UPDATE OF ends SKIP LOCKED
)
SELECT coalesce(jsonb_agg(n), '[]')::text
FROM going
