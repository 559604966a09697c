-- The number of a task by its id.
SELECT n FROM tasks WHERE organization = :organization AND id = :task
