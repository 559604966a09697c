-- Remove the attempts of tasks that go.
DELETE FROM perdure_attempts AS attempts WHERE n IN (SELECT value FROM json_each(:batch))
