-- Write the receipt of a live attempt that nobody cancels and whose time is not over. Until the caller commits, nobody can
-- end the attempt; renewals go on.
WITH held AS MATERIALIZED (
    SELECT live.n, live.attempt_id
    FROM perdure_tasks AS tasks
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n])
    WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
    AND live.attempt_id = %(attempt)s::text AND live.token = %(token)s::text
    AND live.state IN ('leased', 'running')
    AND live.lease_ends_us > %(now)s::bigint AND live.deadline_us > %(now)s::bigint
    AND NOT EXISTS (
        SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke'
    )
    FOR KEY SHARE OF live
)
INSERT INTO perdure_receipts (n, attempt_id, partly, result, encoding, summary, digest, written_us)
SELECT
    held.n, held.attempt_id, %(partly)s::bigint = 1,
    CASE %(encoding)s::text
        WHEN 'json' THEN convert_to(%(result)s::text, 'UTF8')
        ELSE decode(%(result)s::text, 'hex')
    END,
    %(encoding)s::text, %(summary)s::text, %(digest)s::text, %(now)s::bigint
FROM held
RETURNING n
