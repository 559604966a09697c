-- Give slots: a batch of [gate, number of the task].
INSERT INTO perdure_slots (gate, n, taken_us)
SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, %(now)s::bigint
FROM jsonb_array_elements(%(batch)s::jsonb)
