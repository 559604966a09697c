-- Remove idempotency keys that have run out, oldest first.
DELETE FROM perdure_idempotency AS idempotency
WHERE (organization, principal, what, key) IN (
    SELECT organization, principal, what, key FROM perdure_idempotency AS idempotency INDEXED BY perdure_idempotency_by_expiry
    WHERE expires_us <= :now ORDER BY expires_us LIMIT :count
)
