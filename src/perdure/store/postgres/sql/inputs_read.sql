-- How the parents of a task ended.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    tasks.name, coalesce(live.state, ends.state),
    CASE ends.result_encoding
        WHEN 'json' THEN convert_from(ends.result, 'UTF8')
        ELSE encode(ends.result, 'hex')
    END,
    ends.result_encoding
)), '[]')::text
FROM perdure_edges AS edges
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[edges.parent])
LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[edges.parent])
LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[edges.parent])
WHERE edges.child = %(child)s::bigint
