-- Declare nothing lost for a while: the store's time made a jump that the workers did not see. Never shorten one.
UPDATE perdure_meta AS meta SET value = :until_us WHERE key = 'losses_suspended_until_us' AND value < :until_us
