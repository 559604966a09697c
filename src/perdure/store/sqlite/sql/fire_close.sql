-- Note which fires of a schedule have nothing open any more, the oldest first.
UPDATE perdure_fires AS fires
SET open = 0
WHERE organization = :organization AND schedule = :schedule AND open = 1
AND instant_us IN (
    SELECT instant_us
    FROM perdure_fires
    WHERE organization = :organization AND schedule = :schedule AND open = 1
    ORDER BY instant_us
    LIMIT :count
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
