-- The highest number of a task so far.
SELECT coalesce(max(n), 0) FROM perdure_tasks AS tasks
