-- Declare nothing lost before an instant; an earlier suspension is never shortened.
UPDATE meta SET value = max(value, :until) WHERE key = 'losses_suspended_until_us'
