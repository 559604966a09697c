-- Remove the items of tasks that go.
DELETE FROM items WHERE n IN (SELECT value FROM json_each(:batch))
