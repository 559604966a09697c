-- Remove fires that were kept long enough, oldest first, unless what they made is open.
DELETE FROM perdure_fires AS fires
WHERE (organization, schedule, instant_us) IN (
    SELECT organization, schedule, instant_us
    FROM perdure_fires AS fires
    WHERE at_us <= :before AND outcome = 'fired'
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
    ORDER BY at_us
    LIMIT :count
)
