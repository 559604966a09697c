-- Let tasks join their lanes in order; those that are not due keep waiting for their time alone. The rows are locked.
UPDATE perdure_live AS live
SET waits = 0,
    state = CASE WHEN live.due_us <= %(due)s::bigint THEN 'queued' ELSE live.state END,
    seq = CASE WHEN live.due_us <= %(due)s::bigint THEN %(first)s::bigint + joining.position END,
    queued_us = CASE WHEN live.due_us <= %(due)s::bigint THEN %(now)s::bigint END
FROM jsonb_to_recordset(%(joining)s::jsonb) AS joining (n bigint, position bigint)
WHERE live.n = ANY (ARRAY[joining.n]) AND coalesce(live.state, '') IN ('pending', 'retrying') AND live.gate IS NULL
