-- Take keys that nobody holds: rows of organization, key, task, until.
INSERT INTO perdure_unique_keys AS keys (organization, key, task_id, taken_us, until_us)
SELECT value ->> 0, value ->> 1, value ->> 2, :now, value ->> 3
FROM json_each(:batch)
WHERE true
ON CONFLICT DO NOTHING
