-- Remove the parts of tasks that go.
DELETE FROM perdure_parts AS parts
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE parts.n = ANY (ARRAY[gone.value::bigint])
