-- How many tasks have a live attempt.
SELECT count(*) FROM perdure_live AS live WHERE attempt_id IS NOT NULL
