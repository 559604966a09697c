-- Take back the turns of tasks that were claimed: a batch of [gate, number of the task].
DELETE FROM perdure_slots AS slots
USING jsonb_array_elements(%(batch)s::jsonb) AS passed (value)
WHERE slots.gate = ANY (ARRAY[(passed.value ->> 0)::bigint]) AND slots.n = ANY (ARRAY[(passed.value ->> 1)::bigint])
AND slots.free_us IS NULL
