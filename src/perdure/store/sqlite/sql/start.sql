-- The handler has begun.
UPDATE perdure_live AS live
SET state = 'running', started_us = min(:now, max(live.leased_us, :now - (begun.value ->> 1)))
FROM json_each(:batch) AS begun
WHERE live.n = begun.value ->> 0 AND live.state = 'leased'
