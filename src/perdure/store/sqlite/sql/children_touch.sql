-- Group the edges that leave ended tasks by child.
INSERT INTO touched (child, good, bad, excused)
SELECT
    edges.child,
    sum(ended.good),
    sum(NOT ended.good),
    sum(NOT ended.good AND edges.policy = 'continue')
FROM ended
CROSS JOIN perdure_edges AS edges ON edges.parent = ended.n
GROUP BY edges.child
