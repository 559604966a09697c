-- The number of a task by its id.
SELECT tasks.n
FROM perdure_tasks AS tasks
WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
