-- Give slots: a batch of [gate, number of the task].
INSERT INTO perdure_slots (gate, n, taken_us)
SELECT value ->> 0, value ->> 1, :now
FROM json_each(:batch)
