-- Remove the checkpoints of tasks that go.
DELETE FROM checkpoints WHERE n IN (SELECT value FROM json_each(:batch))
