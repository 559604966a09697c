-- Remove the progress of tasks that go.
DELETE FROM perdure_progress AS progress WHERE n IN (SELECT value FROM json_each(:batch))
