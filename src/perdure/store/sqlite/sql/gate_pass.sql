-- Let tasks that waited at the last of their gates join their lanes: a batch of [gate, number of the task], in order.
UPDATE perdure_live AS live
SET waits = 0, gate = NULL, turn = NULL, state = 'queued', seq = :first + passed.key + 1, queued_us = :now,
    due_us = min(live.due_us, :now)
FROM json_each(:batch) AS passed
WHERE live.n = passed.value ->> 1 AND live.gate = passed.value ->> 0 AND live.state IN ('pending', 'retrying')
