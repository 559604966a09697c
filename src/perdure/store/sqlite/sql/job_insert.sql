-- Write new jobs.
INSERT INTO perdure_jobs (
    j, organization, id, name, policy, state, principal, initiator, metadata, idempotency_key, created_us, total, open
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, 'pending', value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, :now, value ->> 9, value ->> 9
FROM json_each(:batch)
