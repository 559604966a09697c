-- Remove the progress of tasks that go.
DELETE FROM perdure_progress AS progress
WHERE n IN (SELECT gone.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value))
