-- Take tasks that run again out of the counters of their jobs; those jobs run again. Their rows are locked already.
UPDATE perdure_jobs AS jobs
SET open = jobs.open + again.open,
    failed = jobs.failed - again.failed,
    excused = jobs.excused - again.excused,
    cancelled = jobs.cancelled - again.cancelled,
    state = CASE WHEN jobs.started_us IS NULL THEN 'pending' ELSE 'running' END,
    finished_us = NULL,
    stopping = CASE WHEN jobs.open > 0 THEN jobs.stopping END,
    cancel_us = CASE WHEN jobs.open > 0 THEN jobs.cancel_us END,
    cancel_actor = CASE WHEN jobs.open > 0 THEN jobs.cancel_actor END,
    cancel_text = CASE WHEN jobs.open > 0 THEN jobs.cancel_text END,
    failing_since_us = CASE WHEN jobs.failed > again.failed THEN jobs.failing_since_us END
FROM (
    SELECT
        ends.job,
        count(*) AS open,
        count(*) FILTER (WHERE ends.state <> 'cancelled' AND tasks.if_failed <> 'continue') AS failed,
        count(*) FILTER (WHERE ends.state <> 'cancelled' AND tasks.if_failed = 'continue') AS excused,
        count(*) FILTER (WHERE ends.state = 'cancelled') AS cancelled
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS redriven (value)
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[redriven.value::bigint])
    JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[ends.n])
    WHERE ends.job IS NOT NULL
    GROUP BY ends.job
) AS again
WHERE jobs.j = ANY (ARRAY[again.job])
