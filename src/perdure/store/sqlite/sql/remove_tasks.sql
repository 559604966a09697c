-- Remove the tasks of tasks that go.
DELETE FROM tasks WHERE n IN (SELECT value FROM json_each(:batch))
