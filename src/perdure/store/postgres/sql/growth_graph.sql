-- The whole of a job: each task's name with those of its parents.
SELECT coalesce(jsonb_agg(jsonb_build_array(tasks.name, above.names)), '[]')::text
FROM perdure_tasks AS tasks
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(parent.name), '[]') AS names
    FROM perdure_edges AS edges
    JOIN perdure_tasks AS parent ON parent.n = ANY (ARRAY[edges.parent])
    WHERE edges.child = ANY (ARRAY[tasks.n])
) AS above
WHERE tasks.job = %(job)s::bigint
