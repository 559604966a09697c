-- Remove the ends of tasks that go.
DELETE FROM ends WHERE n IN (SELECT value FROM json_each(:batch))
