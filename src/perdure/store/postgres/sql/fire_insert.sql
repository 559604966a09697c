-- Keep instants of a schedule, those that it has not kept yet: rows of instant, outcome, task and job.
INSERT INTO perdure_fires AS fires (organization, schedule, instant_us, cause, outcome, task_id, job_id, at_us, open)
SELECT
    %(organization)s::text, %(schedule)s::text, (value ->> 0)::bigint, %(cause)s::text, value ->> 1, value ->> 2,
    value ->> 3, %(now)s::bigint, value ->> 1 = 'fired'
FROM jsonb_array_elements(%(batch)s::jsonb)
ON CONFLICT DO NOTHING
RETURNING instant_us
