-- Hand the ended tasks of jobs on to what follows an end.
INSERT INTO ended (n, job, good)
SELECT n, job, state IN ('succeeded', 'partially_succeeded')
FROM settling
WHERE ended AND job IS NOT NULL
