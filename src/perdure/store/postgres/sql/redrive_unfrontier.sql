-- What follows the end of a task that runs again is no longer due.
DELETE FROM perdure_frontier AS frontier
WHERE n IN (SELECT redriven.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS redriven (value))
