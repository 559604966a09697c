-- What follows the end of a task that runs again is no longer due.
DELETE FROM perdure_frontier AS frontier
USING jsonb_array_elements_text(%(batch)s::jsonb) AS redriven (value)
WHERE frontier.n = ANY (ARRAY[redriven.value::bigint])
