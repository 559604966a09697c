-- Keep instants of a schedule, those that it has not kept yet: rows of instant, outcome, task and job.
INSERT INTO perdure_fires AS fires (organization, schedule, instant_us, cause, outcome, task_id, job_id, at_us, open)
SELECT
    :organization, :schedule, value ->> 0, :cause, value ->> 1, value ->> 2, value ->> 3, :now, value ->> 1 = 'fired'
FROM json_each(:batch)
WHERE true
ON CONFLICT DO NOTHING
RETURNING instant_us
