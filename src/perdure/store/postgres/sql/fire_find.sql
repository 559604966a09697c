-- What instants of a schedule have made: rows of instant, task and job.
SELECT fires.instant_us, fires.task_id, fires.job_id
FROM perdure_fires AS fires
WHERE fires.organization = %(organization)s::text AND fires.schedule = %(schedule)s::text
AND fires.instant_us IN (SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))
