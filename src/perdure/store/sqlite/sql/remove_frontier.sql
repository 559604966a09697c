-- Remove the frontier of tasks that go.
DELETE FROM perdure_frontier AS frontier WHERE n IN (SELECT value FROM json_each(:batch))
