-- Declare nothing lost before an instant; an earlier suspension is never shortened, unless it is on another scale of time.
UPDATE perdure_meta AS meta
SET value = CASE
    WHEN value::bigint > %(now)s::bigint + %(suspension_max)s::bigint THEN %(until)s::bigint
    ELSE greatest(value::bigint, %(until)s::bigint)
END::text
WHERE key = 'losses_suspended_until_us'
