-- Remove the attempts of tasks that go.
DELETE FROM perdure_attempts AS attempts
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE attempts.n = ANY (ARRAY[gone.value::bigint])
