-- What the rows of jobs that run again told becomes lines of their history: since when they were failing, and their ends.
INSERT INTO events (organization, job, at_us, type, actor, initiator, data)
SELECT jobs.organization, jobs.j, told.at_us, told.type, 'system', jobs.initiator, told.data
FROM jobs
CROSS JOIN (
    SELECT j, failing_since_us AS at_us, 'failing' AS type, NULL AS data FROM jobs
    UNION ALL
    SELECT j, finished_us, 'ended', json_object('state', state) FROM jobs
) AS told ON told.j = jobs.j
WHERE jobs.j IN (
    SELECT ends.job
    FROM json_each(:batch) AS redriven
    CROSS JOIN ends ON ends.n = redriven.value
    WHERE ends.job IS NOT NULL
)
AND told.at_us IS NOT NULL
