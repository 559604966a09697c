-- What the rows of jobs that run again have told becomes lines of their history: since when they failed, and their ends.
INSERT INTO perdure_events (organization, job, at_us, type, actor, initiator, data)
WITH again (j) AS MATERIALIZED (
    SELECT DISTINCT ends.job
    FROM json_each(:batch) AS redriven
    CROSS JOIN perdure_ends AS ends ON ends.n = redriven.value
    WHERE ends.job IS NOT NULL
)
SELECT jobs.organization, jobs.j, jobs.failing_since_us, 'failing', 'system', jobs.initiator, NULL
FROM again
CROSS JOIN perdure_jobs AS jobs ON jobs.j = again.j
WHERE jobs.failing_since_us IS NOT NULL
UNION ALL
SELECT jobs.organization, jobs.j, jobs.finished_us, 'ended', 'system', jobs.initiator, json_object('state', jobs.state)
FROM again
CROSS JOIN perdure_jobs AS jobs ON jobs.j = again.j
WHERE jobs.finished_us IS NOT NULL
