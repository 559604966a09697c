-- The ends of tasks that run again are gone.
DELETE FROM perdure_ends AS ends
USING jsonb_array_elements_text(%(batch)s::jsonb) AS redriven (value)
WHERE ends.n = ANY (ARRAY[redriven.value::bigint])
