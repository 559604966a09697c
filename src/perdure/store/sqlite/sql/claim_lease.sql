-- Lease picked tasks: a new attempt with a fence above every earlier one; the first claim sets the execution deadline.
-- A claim that is sent again after its attempt has ended makes no second attempt of that id.
UPDATE perdure_live AS live
SET state = 'leased',
    seq = NULL,
    attempt_id = picked.value ->> 1,
    token = picked.value ->> 2,
    worker = :worker,
    fence = max(live.fence + 1, :now),
    leased_us = :now,
    started_us = NULL,
    deadline_us = coalesce(live.deadline_us, :now + tasks.execution_limit_us),
    lease_ends_us = min(:now + tasks.lease_us, coalesce(live.deadline_us, :now + tasks.execution_limit_us))
FROM json_each(:batch) AS picked
CROSS JOIN perdure_tasks AS tasks ON tasks.n = picked.value ->> 0
WHERE live.n = picked.value ->> 0 AND live.state = 'queued'
AND NOT EXISTS (
    SELECT 1 FROM perdure_attempts AS attempts WHERE attempts.n = live.n AND attempts.id = picked.value ->> 1
)
