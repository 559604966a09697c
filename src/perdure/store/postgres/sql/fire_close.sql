-- Note which fires of a schedule have nothing open any more, the oldest first.
UPDATE perdure_fires AS fires
SET open = false
WHERE organization = %(organization)s::text AND schedule = %(schedule)s::text AND open
AND instant_us IN (
    SELECT asked.instant_us
    FROM perdure_fires AS asked
    WHERE asked.organization = %(organization)s::text AND asked.schedule = %(schedule)s::text AND asked.open
    ORDER BY asked.instant_us
    LIMIT %(count)s::bigint
)
AND (fires.task_id IS NULL OR NOT EXISTS (
    SELECT 1
    FROM perdure_tasks AS tasks
    JOIN perdure_live AS live ON live.n = tasks.n
    WHERE tasks.organization = fires.organization AND tasks.id = fires.task_id
))
AND (fires.job_id IS NULL OR NOT EXISTS (
    SELECT 1
    FROM perdure_jobs AS jobs
    WHERE jobs.organization = fires.organization AND jobs.id = fires.job_id AND jobs.finished_us IS NULL
))
