-- The held tasks of jobs that are stopping, as a batch of cancels.
SELECT json_group_array(json_array(n, actor, reason, text, NULL, :grace, lane, state))
FROM (
    SELECT live.n, live.lane, live.state,
        iif(jobs.stopping = 'requested', jobs.cancel_actor, 'system') AS actor,
        iif(jobs.stopping = 'requested', 'user', 'upstream_failed') AS reason,
        jobs.cancel_text AS text
    FROM perdure_jobs AS jobs INDEXED BY perdure_jobs_stopping
    CROSS JOIN perdure_live AS live INDEXED BY perdure_live_by_job ON live.job = jobs.j
    WHERE jobs.stopping IS NOT NULL AND jobs.open > 0
    AND live.state IN ('leased', 'running')
    LIMIT :count
)
