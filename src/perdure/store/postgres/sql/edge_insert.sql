-- Write the dependencies of a new job.
INSERT INTO perdure_edges (parent, child, policy)
SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2
FROM jsonb_array_elements(%(batch)s::jsonb)
