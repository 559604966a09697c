-- What the handlers of a job's tasks told of their items: how many are done, and of how many, where that was told.
-- Each task's row is looked up by its number, however many tasks the job is thought to have: LIMIT keeps it so.
SELECT json_build_array(sum(told.done), sum(told.total))::text
FROM perdure_tasks AS tasks
CROSS JOIN LATERAL (
    SELECT progress.done, progress.total FROM perdure_progress AS progress WHERE progress.n = tasks.n LIMIT 1
) AS told
WHERE tasks.job = (
    SELECT jobs.j FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.j = %(j)s::bigint
)
