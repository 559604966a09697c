-- Remove idempotency keys that have run out, oldest first.
DELETE FROM idempotency
WHERE (organization, principal, what, key) IN (
    SELECT organization, principal, what, key FROM idempotency INDEXED BY idempotency_by_expiry
    WHERE expires_us <= :now ORDER BY expires_us LIMIT :count
)
