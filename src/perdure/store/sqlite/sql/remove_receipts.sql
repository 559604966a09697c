-- Remove the receipts of tasks that go.
DELETE FROM receipts WHERE n IN (SELECT value FROM json_each(:batch))
