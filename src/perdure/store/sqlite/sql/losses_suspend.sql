-- Declare nothing lost before an instant; an earlier suspension is never shortened, unless it is on another scale of time.
UPDATE perdure_meta AS meta
SET value = iif(value > :now + :suspension_max, :until, max(value, :until))
WHERE key = 'losses_suspended_until_us'
