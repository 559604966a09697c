-- The number of a task by its id.
SELECT n FROM perdure_tasks AS tasks WHERE organization = :organization AND id = :task
