-- Bind keys to what they made; a key that has run out is taken over.
INSERT INTO perdure_idempotency AS idempotency (organization, principal, what, key, id, request_hash, expires_us)
SELECT value ->> 0, value ->> 1, :what, value ->> 2, value ->> 3, value ->> 4, :now + :life
FROM json_each(:batch)
WHERE true
ON CONFLICT DO UPDATE SET id = excluded.id, request_hash = excluded.request_hash, expires_us = excluded.expires_us
WHERE idempotency.expires_us <= :now
