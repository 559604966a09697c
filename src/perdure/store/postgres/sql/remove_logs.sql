-- Remove the logs of tasks that go.
DELETE FROM perdure_logs AS logs
WHERE logs.n IN (SELECT gone.n::bigint FROM json_array_elements_text(%(batch)s::json) AS gone (n))
