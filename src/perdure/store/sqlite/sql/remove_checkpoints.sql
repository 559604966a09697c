-- Remove the checkpoints of tasks that go.
DELETE FROM perdure_checkpoints AS checkpoints WHERE n IN (SELECT value FROM json_each(:batch))
