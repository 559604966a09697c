-- Keep the newest checkpoint of a task.
INSERT INTO perdure_checkpoints (n, generation, value, written_us)
SELECT value ->> 0, value ->> 1, value ->> 2, :now
FROM json_each(:batch)
WHERE true
ON CONFLICT DO UPDATE SET generation = excluded.generation, value = excluded.value, written_us = excluded.written_us
