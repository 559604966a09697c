-- Remove the progress of tasks that go.
DELETE FROM progress WHERE n IN (SELECT value FROM json_each(:batch))
