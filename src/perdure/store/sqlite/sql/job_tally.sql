-- Count ended tasks into their jobs; a job none of whose tasks is open ends here.
UPDATE perdure_jobs AS jobs
SET open = tally.open,
    succeeded = tally.succeeded,
    partial = tally.partial,
    failed = tally.failed,
    excused = tally.excused,
    cancelled = tally.cancelled,
    stopping = CASE WHEN jobs.stopping IS NULL AND tally.stops THEN 'failure' ELSE jobs.stopping END,
    failing_since_us = CASE WHEN tally.failed > 0 THEN coalesce(jobs.failing_since_us, :now) END,
    finished_us = CASE WHEN tally.open = 0 THEN :now END,
    state = CASE
        WHEN tally.open > 0 THEN jobs.state
        WHEN jobs.stopping = 'requested' THEN 'cancelled'
        WHEN tally.failed > 0 THEN 'failed'
        WHEN tally.excused > 0 OR tally.partial > 0 THEN 'partially_succeeded'
        WHEN tally.cancelled > 0 AND tally.succeeded = 0 THEN 'cancelled'
        ELSE 'succeeded'
    END
FROM (
    SELECT
        jobs.j,
        jobs.open - count(*) AS open,
        jobs.succeeded + count(*) FILTER (WHERE ends.state = 'succeeded') AS succeeded,
        jobs.partial + count(*) FILTER (WHERE ends.state = 'partially_succeeded') AS partial,
        jobs.failed + count(*) FILTER (
            WHERE ends.state IN ('failed', 'dead_lettered', 'expired') AND tasks.if_failed <> 'continue'
        ) AS failed,
        jobs.excused + count(*) FILTER (
            WHERE ends.state IN ('failed', 'dead_lettered', 'expired') AND tasks.if_failed = 'continue'
        ) AS excused,
        jobs.cancelled + count(*) FILTER (WHERE ends.state = 'cancelled') AS cancelled,
        max(ends.state IN ('failed', 'dead_lettered', 'expired') AND tasks.if_failed = 'cancel_job') AS stops
    FROM ended
    CROSS JOIN perdure_jobs AS jobs ON jobs.j = ended.job
    CROSS JOIN perdure_ends AS ends ON ends.n = ended.n
    CROSS JOIN perdure_tasks AS tasks ON tasks.n = ended.n
    GROUP BY jobs.j
) AS tally
WHERE jobs.j = tally.j AND jobs.open > 0
