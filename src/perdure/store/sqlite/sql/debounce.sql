-- Let waiting tasks wait on: rows of number, when they are due, until when they must have
-- begun, and their options.
UPDATE perdure_live AS live
SET state = iif(live.state = 'queued', 'pending', live.state),
    seq = NULL, queued_us = NULL, due_us = asked.value ->> 1, expires_us = asked.value ->> 2, gate = NULL, turn = NULL,
    gated = (asked.value ->> 3) ->> '$.gates' IS NOT NULL
FROM json_each(:batch) AS asked
WHERE live.n = asked.value ->> 0 AND live.state IN ('pending', 'queued', 'retrying') AND live.waits = 0
