-- Remove the results of tasks that stay.
UPDATE perdure_ends AS ends
SET result = NULL, result_encoding = NULL
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE ends.n = ANY (ARRAY[gone.value::bigint])
