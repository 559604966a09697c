-- Remove the events of tasks that go.
DELETE FROM events WHERE n IN (SELECT value FROM json_each(:batch))
