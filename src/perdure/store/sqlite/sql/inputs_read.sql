-- How the parents of a task ended.
SELECT json_group_array(json_array(
    tasks.name, coalesce(live.state, ends.state),
    CASE ends.result_encoding WHEN 'json' THEN CAST(ends.result AS TEXT) ELSE hex(ends.result) END, ends.result_encoding
))
FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child
CROSS JOIN perdure_tasks AS tasks ON tasks.n = edges.parent
LEFT JOIN perdure_live AS live ON live.n = edges.parent
LEFT JOIN perdure_ends AS ends ON ends.n = edges.parent
WHERE edges.child = :child
