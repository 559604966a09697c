-- Count out of counters.
UPDATE perdure_counts AS counts
SET count = count - (change.value ->> 2)
FROM json_each(:batch) AS change
WHERE counts.lane = change.value ->> 0 AND counts.state = change.value ->> 1
