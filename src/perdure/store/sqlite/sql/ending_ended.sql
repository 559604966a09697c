-- Hand the ended waiting tasks of jobs on to what follows an end.
INSERT INTO ended (n, job, good)
SELECT n, job, 0
FROM ending
WHERE job IS NOT NULL
