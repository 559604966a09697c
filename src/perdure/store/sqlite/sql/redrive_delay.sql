-- Tasks that run again begin later: number, by how much.
UPDATE perdure_live AS live
SET due_us = live.due_us + (later.value ->> 1), expires_us = live.expires_us + (later.value ->> 1)
FROM json_each(:batch) AS later
WHERE live.n = later.value ->> 0
