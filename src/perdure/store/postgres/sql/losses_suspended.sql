-- Until when nothing is declared lost; an instant further ahead than any suspension reaches is on another scale of time.
SELECT CASE
    WHEN value::bigint > %(now)s::bigint + %(suspension_max)s::bigint THEN 0::bigint
    ELSE value::bigint
END
FROM perdure_meta AS meta
WHERE key = 'losses_suspended_until_us'
