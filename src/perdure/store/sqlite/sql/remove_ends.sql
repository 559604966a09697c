-- Remove the ends of tasks that go.
DELETE FROM perdure_ends AS ends WHERE n IN (SELECT value FROM json_each(:batch))
