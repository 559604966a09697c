-- Note how far the store's time has come: a later anchor never falls behind it.
UPDATE perdure_meta AS meta SET value = :now WHERE key = 'last_us' AND value < :now
