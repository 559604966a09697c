-- Write the dependencies of a new job.
INSERT INTO perdure_edges (parent, child, policy)
SELECT value ->> 0, value ->> 1, value ->> 2
FROM json_each(:batch)
