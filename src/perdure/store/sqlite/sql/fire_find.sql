-- What instants of a schedule have made: rows of instant, task and job.
SELECT fires.instant_us, fires.task_id, fires.job_id
FROM json_each(:batch) AS asked
JOIN perdure_fires AS fires
    ON fires.organization = :organization AND fires.schedule = :schedule AND fires.instant_us = asked.value
