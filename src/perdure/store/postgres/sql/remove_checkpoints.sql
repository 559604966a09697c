-- Remove the checkpoints of tasks that go.
DELETE FROM perdure_checkpoints AS checkpoints
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE checkpoints.n = ANY (ARRAY[gone.value::bigint])
