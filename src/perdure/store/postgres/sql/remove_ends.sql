-- Remove the ends of tasks that go.
DELETE FROM perdure_ends AS ends
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE ends.n = ANY (ARRAY[gone.value::bigint])
