-- Tasks have so many parents more.
UPDATE perdure_tasks AS tasks
SET parents = tasks.parents + (more.value ->> 1)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) AS more (value)
WHERE tasks.n = ANY (ARRAY[(more.value ->> 0)::bigint])
