-- Remove the receipts of tasks that go.
DELETE FROM perdure_receipts AS receipts
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE receipts.n = ANY (ARRAY[gone.value::bigint])
