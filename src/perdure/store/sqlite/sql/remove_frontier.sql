-- Remove the frontier of tasks that go.
DELETE FROM frontier WHERE n IN (SELECT value FROM json_each(:batch))
