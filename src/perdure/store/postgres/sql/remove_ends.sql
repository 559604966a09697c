-- Remove the ends of tasks that go.
DELETE FROM perdure_ends AS ends
WHERE n IN (SELECT gone.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value))
