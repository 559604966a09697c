-- Remove the receipts of tasks that go.
DELETE FROM perdure_receipts AS receipts WHERE n IN (SELECT value FROM json_each(:batch))
