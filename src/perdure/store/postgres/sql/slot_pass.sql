-- Take back the turns of tasks that were claimed: a batch of [gate, number of the task].
DELETE FROM perdure_slots AS slots
WHERE slots.n = ANY (ARRAY(
    SELECT (passed.value ->> 1)::bigint FROM jsonb_array_elements(%(batch)s::jsonb) AS passed (value)
)) AND slots.free_us IS NULL
AND (
    SELECT count(*) FROM jsonb_array_elements(%(batch)s::jsonb) AS passed (value)
    WHERE (passed.value ->> 0)::bigint = slots.gate AND (passed.value ->> 1)::bigint = slots.n
) > 0
