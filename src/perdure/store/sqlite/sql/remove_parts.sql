-- Remove the parts of tasks that go.
DELETE FROM perdure_parts AS parts WHERE n IN (SELECT value FROM json_each(:batch))
