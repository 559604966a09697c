-- The children of tasks that ended in a cascade are looked at later.
INSERT OR IGNORE INTO perdure_frontier (n, good)
SELECT n, 0
FROM ending
WHERE EXISTS (SELECT 1 FROM perdure_edges AS edges WHERE edges.parent = ending.n)
