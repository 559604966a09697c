-- How the parents of a task ended.
SELECT json_group_array(json_array(
    tasks.name, coalesce(live.state, ends.state),
    CASE ends.result_encoding WHEN 'json' THEN CAST(ends.result AS TEXT) ELSE hex(ends.result) END, ends.result_encoding
))
FROM edges INDEXED BY edges_by_child
CROSS JOIN tasks ON tasks.n = edges.parent
LEFT JOIN live ON live.n = edges.parent
LEFT JOIN ends ON ends.n = edges.parent
WHERE edges.child = :child
