-- Bind the idempotency key of one new task: organization, principal, key, task, the request's hash, now, life. None lives
-- under it: one that has run out is taken over.
INSERT INTO perdure_idempotency (organization, principal, what, key, id, request_hash, expires_us)
VALUES (?1, ?2, 'task', ?3, ?4, ?5, ?6 + ?7)
ON CONFLICT DO UPDATE SET id = excluded.id, request_hash = excluded.request_hash, expires_us = excluded.expires_us
