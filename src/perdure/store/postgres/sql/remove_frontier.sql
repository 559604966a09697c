-- Remove the frontier of tasks that go.
DELETE FROM perdure_frontier AS frontier
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE frontier.n = ANY (ARRAY[gone.value::bigint])
