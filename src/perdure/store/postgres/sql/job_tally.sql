-- Count ended tasks into their jobs; a job none of whose tasks is open ends here. Rows are locked in ascending order of job,
-- and every new value is worked out from the row as it then is: another transaction may have counted meanwhile.
WITH tally AS MATERIALIZED (
    SELECT
        ended.job AS j,
        count(*) AS ends,
        count(*) FILTER (WHERE ends.state = 'succeeded') AS succeeded,
        count(*) FILTER (WHERE ends.state = 'partially_succeeded') AS partial,
        count(*) FILTER (WHERE ends.state IN ('failed', 'dead_lettered', 'expired') AND tasks.if_failed <> 'continue') AS failed,
        count(*) FILTER (WHERE ends.state IN ('failed', 'dead_lettered', 'expired') AND tasks.if_failed = 'continue') AS excused,
        count(*) FILTER (WHERE ends.state = 'cancelled') AS cancelled,
        bool_or(ends.state IN ('failed', 'dead_lettered', 'expired') AND tasks.if_failed = 'cancel_job') AS stops
    FROM jsonb_to_recordset(%(ended)s::jsonb) AS ended (n bigint, job bigint)
    CROSS JOIN LATERAL (
        SELECT ends.state FROM perdure_ends AS ends
        WHERE ends.n >= ended.n AND ends.n <= ended.n ORDER BY ends.n LIMIT 1
    ) AS ends
    JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[ended.n])
    WHERE ended.job IS NOT NULL
    GROUP BY ended.job
    ORDER BY ended.job
),
locked AS MATERIALIZED (
    SELECT tally.*
    FROM tally
    JOIN perdure_jobs AS jobs ON jobs.j = ANY (ARRAY[tally.j])
    WHERE jobs.open > 0
    ORDER BY tally.j NULLS LAST
    FOR NO KEY UPDATE OF jobs
)
UPDATE perdure_jobs AS jobs
SET open = jobs.open - tally.ends,
    succeeded = jobs.succeeded + tally.succeeded,
    partial = jobs.partial + tally.partial,
    failed = jobs.failed + tally.failed,
    excused = jobs.excused + tally.excused,
    cancelled = jobs.cancelled + tally.cancelled,
    stopping = CASE WHEN jobs.stopping IS NULL AND tally.stops THEN 'failure' ELSE jobs.stopping END,
    failing_since_us = CASE
        WHEN jobs.failed + tally.failed > 0 THEN coalesce(jobs.failing_since_us, %(now)s::bigint)
    END,
    finished_us = CASE WHEN jobs.open = tally.ends THEN %(now)s::bigint END,
    state = CASE
        WHEN jobs.open > tally.ends THEN jobs.state
        WHEN jobs.stopping = 'requested' THEN 'cancelled'
        WHEN jobs.failed + tally.failed > 0 THEN 'failed'
        WHEN jobs.excused + tally.excused > 0 OR jobs.partial + tally.partial > 0 THEN 'partially_succeeded'
        WHEN jobs.cancelled + tally.cancelled > 0 AND jobs.succeeded + tally.succeeded = 0 THEN 'cancelled'
        ELSE 'succeeded'
    END
FROM locked AS tally
WHERE jobs.j = ANY (ARRAY[tally.j]) AND jobs.open > 0
