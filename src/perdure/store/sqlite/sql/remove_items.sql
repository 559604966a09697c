-- Remove the items of tasks that go.
DELETE FROM perdure_items AS items WHERE n IN (SELECT value FROM json_each(:batch))
