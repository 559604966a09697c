-- Remove idempotency keys that have run out, oldest first. One that is being taken over is left.
WITH over AS MATERIALIZED (
    SELECT known.organization, known.principal, known.what, known.key
    FROM perdure_idempotency AS known
    WHERE known.expires_us <= %(now)s::bigint
    ORDER BY known.expires_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM perdure_idempotency AS idempotency
USING over
WHERE idempotency.organization = over.organization AND idempotency.principal = over.principal
AND idempotency.what = over.what AND idempotency.key = over.key AND idempotency.expires_us <= %(now)s::bigint
