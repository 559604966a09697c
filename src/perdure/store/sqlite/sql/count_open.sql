-- Make the counters that a batch of changes needs.
INSERT OR IGNORE INTO counts (lane, state, count)
SELECT value ->> 0, value ->> 1, 0
FROM json_each(:batch)
