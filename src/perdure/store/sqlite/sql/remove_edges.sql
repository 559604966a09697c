-- Remove the edges of tasks that go.
DELETE FROM edges
WHERE parent IN (SELECT value FROM json_each(:batch)) OR child IN (SELECT value FROM json_each(:batch))
