-- Let waiting tasks wait on: rows of number, when they are due, until when they must have begun, and their options. They are
-- locked already.
UPDATE perdure_live AS live
SET state = CASE live.state WHEN 'queued' THEN 'pending' ELSE live.state END,
    seq = NULL, queued_us = NULL, due_us = (asked.value ->> 1)::bigint, expires_us = (asked.value ->> 2)::bigint,
    gate = NULL, turn = NULL, gated = ((asked.value ->> 3)::json -> 'gates' IS NOT NULL)::integer
FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
WHERE live.n = ANY (ARRAY[(asked.value ->> 0)::bigint]) AND live.state IN ('pending', 'queued', 'retrying')
AND live.waits = 0
