-- Tasks wait for so many parents more.
UPDATE perdure_live AS live
SET waits = waits + (more.value ->> 1)
FROM json_each(:batch) AS more
WHERE live.n = more.value ->> 0 AND live.state = 'pending' AND live.waits > 0
