-- Remove the events of tasks that go.
DELETE FROM perdure_events AS events WHERE n IN (SELECT value FROM json_each(:batch))
