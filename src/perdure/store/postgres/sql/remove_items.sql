-- Remove the items of tasks that go.
DELETE FROM perdure_items AS items
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE items.n = ANY (ARRAY[gone.value::bigint])
