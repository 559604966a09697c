-- The ends of tasks that run again are gone.
DELETE FROM perdure_ends AS ends
WHERE n IN (SELECT redriven.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS redriven (value))
