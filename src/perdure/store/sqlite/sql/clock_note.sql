-- Note how far the store's time has come: a later anchor never falls behind it.
UPDATE meta SET value = :now WHERE key = 'last_us' AND value < :now
