-- The children of tasks that ended in a cascade are looked at later.
INSERT INTO perdure_frontier (n, good)
SELECT n, false
FROM jsonb_to_recordset(%(ending)s::jsonb) AS ending (n bigint)
WHERE EXISTS (SELECT 1 FROM perdure_edges AS edges WHERE edges.parent = ending.n)
ON CONFLICT DO NOTHING
