-- Write the live rows of new tasks.
WITH template AS MATERIALIZED (
    SELECT key AS place, value ->> 0 AS organization, value ->> 1 AS lane, value ->> 2 AS job, value ->> 6 AS ttl_us
    FROM json_each(:templates)
)
INSERT INTO live (n, organization, lane, job, waits, state, seq, due_us, expires_us, queued_us)
SELECT
    :first + task.key, template.organization, template.lane, template.job, task.value ->> 6,
    task.value ->> 3, task.value ->> 4, task.value ->> 5, :now + template.ttl_us,
    CASE task.value ->> 3 WHEN 'queued' THEN :now END
FROM json_each(:batch) AS task
CROSS JOIN template ON template.place = task.value ->> 2
