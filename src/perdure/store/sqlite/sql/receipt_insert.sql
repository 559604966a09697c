-- Write the receipt of a live attempt that nobody cancels and whose time is not over.
INSERT INTO perdure_receipts (n, attempt_id, partly, result, encoding, summary, digest, written_us)
SELECT
    live.n, live.attempt_id, :partly,
    CASE :encoding WHEN 'json' THEN CAST(:result AS BLOB) ELSE unhex(:result) END, :encoding, :summary, :digest, :now
FROM perdure_tasks AS tasks
CROSS JOIN perdure_live AS live ON live.n = tasks.n
WHERE tasks.organization = :organization AND tasks.id = :task
AND live.attempt_id = :attempt AND live.token = :token
AND live.state IN ('leased', 'running')
AND live.lease_ends_us > :now AND live.deadline_us > :now
AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
RETURNING n
