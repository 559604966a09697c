-- Stage waiting tasks of jobs that are stopping.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor, cancel_text)
SELECT
    live.n, live.lane, live.job, live.state, 'cancelled',
    iif(jobs.stopping = 'requested', 'user', 'upstream_failed'),
    iif(jobs.stopping = 'requested', jobs.cancel_actor, 'system'),
    jobs.cancel_text
FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_stopping
CROSS JOIN perdure_live AS live INDEXED BY perdure_live_by_job ON live.job = jobs.j
WHERE jobs.stopping IS NOT NULL AND jobs.open > 0
AND live.state IN ('pending', 'queued', 'retrying')
LIMIT :count
