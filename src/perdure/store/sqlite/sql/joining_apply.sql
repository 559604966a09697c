-- Let tasks join their lanes in order; those that are not due keep waiting for their time alone.
UPDATE perdure_live AS live
SET waits = 0,
    state = CASE WHEN live.due_us <= :due THEN 'queued' ELSE live.state END,
    seq = CASE
        WHEN live.due_us <= :due THEN :first + (SELECT joining.position FROM joining WHERE joining.n = live.n)
    END,
    queued_us = CASE WHEN live.due_us <= :due THEN :now END
WHERE live.n IN (SELECT n FROM joining) AND live.state IN ('pending', 'retrying') AND live.gate IS NULL
