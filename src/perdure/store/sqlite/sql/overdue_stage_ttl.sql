-- Stage waiting tasks whose TTL has passed.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor)
SELECT n, lane, job, state, 'expired', 'ttl', 'system'
FROM perdure_live AS live INDEXED BY perdure_live_ttl
WHERE expires_us IS NOT NULL AND attempt_id IS NULL AND expires_us <= :now
ORDER BY expires_us
LIMIT :count
