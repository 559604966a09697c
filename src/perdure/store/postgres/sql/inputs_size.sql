-- How many bytes the results of a task's parents have.
SELECT coalesce(sum(length(ends.result)), 0)::bigint
FROM perdure_edges AS edges
JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[edges.parent])
WHERE edges.child = %(child)s::bigint
