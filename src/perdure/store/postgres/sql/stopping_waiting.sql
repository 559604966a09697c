-- Stage waiting tasks of jobs that are stopping. What another run has is left to it.
-- stages: ending
WITH waiting AS (
    SELECT
        live.n, live.lane, live.job, live.state, jobs.cancel_text,
        CASE WHEN jobs.stopping = 'requested' THEN 'user' ELSE 'upstream_failed' END AS reason,
        CASE WHEN jobs.stopping = 'requested' THEN jobs.cancel_actor ELSE 'system' END AS actor
    FROM perdure_jobs AS jobs
    JOIN perdure_live AS live ON live.job = jobs.j
    WHERE jobs.stopping IS NOT NULL AND jobs.open > 0 AND live.state IN ('pending', 'queued', 'retrying')
    LIMIT %(count)s::bigint
    FOR UPDATE OF live SKIP LOCKED
)
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'n', n, 'lane', lane, 'job', job, 'from_state', state, 'state', 'cancelled', 'reason', reason, 'actor', actor,
    'cancel_text', cancel_text
)), '[]')::text
FROM waiting
