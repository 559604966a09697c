-- Stage ended tasks whose children have not been looked at.
INSERT INTO ended (n, job, good)
SELECT n, NULL, good FROM perdure_frontier AS frontier ORDER BY n LIMIT :count
