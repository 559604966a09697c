-- Stage waiting tasks whose TTL has passed. What another run has is left to it.
-- stages: ending
WITH overdue AS (
    SELECT live.n, live.lane, live.job, live.state
    FROM perdure_live AS live
    WHERE live.expires_us IS NOT NULL AND live.state IN ('pending', 'queued', 'retrying')
    AND live.expires_us >= %(since)s::bigint AND live.expires_us <= %(now)s::bigint
    ORDER BY live.expires_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'n', n, 'lane', lane, 'job', job, 'from_state', state, 'state', 'expired', 'reason', 'ttl', 'actor', 'system'
)), '[]')::text
FROM overdue
