-- Remove fires that were kept long enough, oldest first, unless what they made is open.
DELETE FROM perdure_fires AS removed
USING (
    SELECT fires.organization, fires.schedule, fires.instant_us
    FROM perdure_fires AS fires
    WHERE fires.at_us <= %(before)s::bigint AND fires.outcome = 'fired'
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
    ORDER BY fires.at_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
) AS over
WHERE removed.organization = over.organization AND removed.schedule = over.schedule
AND removed.instant_us = over.instant_us
