-- The highest number of a job so far.
SELECT coalesce(max(j), 0) FROM perdure_jobs AS jobs
