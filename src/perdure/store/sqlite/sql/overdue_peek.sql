-- Whether a waiting task is past its TTL or its execution deadline.
SELECT EXISTS (
    SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_ttl
    WHERE expires_us IS NOT NULL AND attempt_id IS NULL AND expires_us <= :now
) OR EXISTS (
    SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_deadline
    WHERE deadline_us IS NOT NULL AND attempt_id IS NULL AND deadline_us <= :now
)
