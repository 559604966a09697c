-- Remove the attempts of tasks that go.
DELETE FROM perdure_attempts AS attempts
WHERE n IN (SELECT gone.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value))
