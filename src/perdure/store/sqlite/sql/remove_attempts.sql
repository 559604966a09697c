-- Remove the attempts of tasks that go.
DELETE FROM attempts WHERE n IN (SELECT value FROM json_each(:batch))
