-- Of tasks of a batch that came back to their lanes, those that start at a rate wait for another slot of it.
UPDATE perdure_live AS live
SET state = 'pending', seq = NULL, queued_us = NULL
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS returned (value)
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[returned.value::bigint])
WHERE live.n = ANY (ARRAY[tasks.n]) AND live.state = 'queued'
AND EXISTS (
    SELECT 1 FROM json_array_elements(tasks.options -> 'gates') AS gate (value) WHERE gate.value ->> 0 = 'rate'
)
RETURNING live.n, live.lane
