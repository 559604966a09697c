-- Remove how far the results of lanes that go had been removed.
DELETE FROM perdure_results_removed AS marks WHERE lane IN (SELECT value FROM json_each(:batch))
