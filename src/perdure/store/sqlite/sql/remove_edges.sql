-- Remove the edges of tasks that go.
DELETE FROM perdure_edges AS edges
WHERE parent IN (SELECT value FROM json_each(:batch)) OR child IN (SELECT value FROM json_each(:batch))
