-- Remove tasks that go.
DELETE FROM perdure_tasks AS tasks
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE tasks.n = ANY (ARRAY[gone.value::bigint])
