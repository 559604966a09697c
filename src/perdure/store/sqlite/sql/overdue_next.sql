-- When the next waiting task is past its TTL or its execution deadline.
SELECT min(at_us)
FROM (
    SELECT min(expires_us) AS at_us FROM perdure_live AS live INDEXED BY perdure_live_ttl
    WHERE expires_us IS NOT NULL AND attempt_id IS NULL
    UNION ALL
    SELECT min(deadline_us) FROM perdure_live AS live INDEXED BY perdure_live_deadline
    WHERE deadline_us IS NOT NULL AND attempt_id IS NULL
)
