-- Remove the logs of tasks that go.
DELETE FROM perdure_logs AS logs WHERE n IN (SELECT value FROM json_each(:batch))
