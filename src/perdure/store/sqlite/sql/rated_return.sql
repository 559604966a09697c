-- Of tasks of a batch that came back to their lanes, those that start at a rate wait for another slot of it.
UPDATE perdure_live AS live
SET state = 'pending', seq = NULL, queued_us = NULL
WHERE n IN (SELECT value FROM json_each(:batch)) AND state = 'queued'
AND EXISTS (
    SELECT 1
    FROM perdure_tasks AS tasks
    CROSS JOIN json_each(tasks.options -> '$.gates') AS gate
    WHERE tasks.n = live.n AND gate.value ->> 0 = 'rate'
)
RETURNING n, lane
