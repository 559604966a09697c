-- Write a new job; its number. No row where its id is taken already.
INSERT INTO perdure_jobs (
    organization, id, name, policy, state, principal, initiator, metadata, idempotency_key, created_us, total, open
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, 'pending', value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    %(now)s::bigint, (value ->> 8)::bigint, (value ->> 8)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb)
ON CONFLICT (organization, id) DO NOTHING
RETURNING j
