-- Tasks of jobs that may go. Locks their ends; what is being run again is left, and its job with it.
WITH going AS (
    SELECT tasks.n
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
    JOIN perdure_tasks AS tasks ON tasks.job = gone.value::bigint
    JOIN perdure_ends AS ends ON ends.n = tasks.n
    LIMIT %(count)s::bigint
    FOR UPDATE OF ends SKIP LOCKED
)
SELECT coalesce(jsonb_agg(n), '[]')::text
FROM going
