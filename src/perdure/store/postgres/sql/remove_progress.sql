-- Remove the progress of tasks that go.
DELETE FROM perdure_progress AS progress
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE progress.n = ANY (ARRAY[gone.value::bigint])
