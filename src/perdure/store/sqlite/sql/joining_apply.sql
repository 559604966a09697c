-- Let tasks join their lanes in order; those that are not due keep waiting for their time alone.
UPDATE perdure_live AS live
SET waits = 0,
    state = CASE WHEN live.due_us <= :now THEN 'queued' ELSE live.state END,
    seq = CASE WHEN live.due_us <= :now THEN :first + joining.position END,
    queued_us = CASE WHEN live.due_us <= :now THEN :now END
FROM joining
WHERE live.n = joining.n AND live.state IN ('pending', 'retrying')
