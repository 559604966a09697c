-- The tasks that still wait for parents of a batch.
SELECT json_group_array(DISTINCT live.n)
FROM json_each(:batch) AS redriven
CROSS JOIN perdure_edges AS edges ON edges.parent = redriven.value
CROSS JOIN perdure_live AS live ON live.n = edges.child
WHERE live.state = 'pending' AND live.waits > 0
