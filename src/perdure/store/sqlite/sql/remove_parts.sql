-- Remove the parts of tasks that go.
DELETE FROM parts WHERE n IN (SELECT value FROM json_each(:batch))
