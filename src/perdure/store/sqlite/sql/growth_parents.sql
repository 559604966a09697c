-- Tasks have so many parents more.
UPDATE perdure_tasks AS tasks
SET parents = parents + (more.value ->> 1)
FROM json_each(:batch) AS more
WHERE tasks.n = more.value ->> 0
