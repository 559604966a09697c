-- How many bytes the results of a task's parents have.
SELECT coalesce(sum(length(ends.result)), 0)
FROM edges INDEXED BY edges_by_child
CROSS JOIN ends ON ends.n = edges.parent
WHERE edges.child = :child
