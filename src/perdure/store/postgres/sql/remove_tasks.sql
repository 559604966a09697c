-- Remove tasks that go.
DELETE FROM perdure_tasks AS tasks
WHERE n IN (SELECT gone.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value))
