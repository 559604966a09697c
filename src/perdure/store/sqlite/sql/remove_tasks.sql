-- Remove the tasks of tasks that go.
DELETE FROM perdure_tasks AS tasks WHERE n IN (SELECT value FROM json_each(:batch))
