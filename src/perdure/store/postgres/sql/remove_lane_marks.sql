-- Remove how far the results of lanes that go had been removed.
DELETE FROM perdure_results_removed AS marks
WHERE marks.lane IN (SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))
