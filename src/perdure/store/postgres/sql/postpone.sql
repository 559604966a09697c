-- Give a waiting task a new time to run at.
UPDATE perdure_live AS live
SET state = 'pending', seq = NULL, queued_us = NULL, due_us = greatest(%(due)s::bigint, %(now)s::bigint), gate = NULL, turn = NULL
WHERE n = %(n)s::bigint AND state IN ('pending', 'queued') AND waits = 0
