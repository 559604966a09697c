-- Take back the turns of tasks that were claimed: a batch of [gate, number of the task].
DELETE FROM perdure_slots AS slots
WHERE free_us IS NULL
AND (gate, n) IN (SELECT passed.value ->> 0, passed.value ->> 1 FROM json_each(:batch) AS passed)
