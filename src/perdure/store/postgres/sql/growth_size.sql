-- How many tasks and dependencies a job has.
SELECT jsonb_build_array(count(*), coalesce(sum(above.edges), 0))::text
FROM perdure_tasks AS tasks
CROSS JOIN LATERAL (
    SELECT count(*) AS edges FROM perdure_edges AS edges WHERE edges.child = ANY (ARRAY[tasks.n])
) AS above
WHERE tasks.job = %(job)s::bigint
