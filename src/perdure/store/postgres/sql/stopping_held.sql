-- The held tasks of jobs that are stopping, as a batch of cancels. Locks them; what another run has is left to it.
WITH held AS (
    SELECT
        live.n, live.lane, live.state, jobs.cancel_text,
        CASE WHEN jobs.stopping = 'requested' THEN jobs.cancel_actor ELSE 'system' END AS actor,
        CASE WHEN jobs.stopping = 'requested' THEN 'user' ELSE 'upstream_failed' END AS reason
    FROM perdure_jobs AS jobs
    JOIN perdure_live AS live ON live.job = jobs.j
    WHERE jobs.stopping IS NOT NULL AND jobs.open > 0 AND live.state IN ('leased', 'running')
    LIMIT %(count)s::bigint
    FOR NO KEY UPDATE OF live SKIP LOCKED
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    n, actor, reason, cancel_text, NULL, %(grace)s::bigint, lane, state
)), '[]')::text
FROM held
