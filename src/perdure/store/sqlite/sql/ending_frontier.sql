-- The children of tasks that ended in a cascade are looked at later.
INSERT OR IGNORE INTO frontier (n, good)
SELECT n, 0
FROM ending
WHERE job IS NOT NULL AND EXISTS (SELECT 1 FROM edges WHERE edges.parent = ending.n)
