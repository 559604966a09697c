-- Let tasks wait at gates: a batch of [number, gate, turn].
UPDATE perdure_live AS live
SET waits = 0, gate = blocked.value ->> 1, turn = blocked.value ->> 2
FROM json_each(:batch) AS blocked
WHERE live.n = blocked.value ->> 0 AND live.state IN ('pending', 'retrying')
