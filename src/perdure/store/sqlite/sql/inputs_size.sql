-- How many bytes the results of a task's parents have.
SELECT coalesce(sum(length(ends.result)), 0)
FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child
CROSS JOIN perdure_ends AS ends ON ends.n = edges.parent
WHERE edges.child = :child
