-- Count into counters, making those that are not there yet.
INSERT INTO perdure_counts (lane, state, count)
SELECT value ->> 0, value ->> 1, value ->> 2
FROM json_each(:batch)
WHERE true
ON CONFLICT DO UPDATE SET count = count + excluded.count
