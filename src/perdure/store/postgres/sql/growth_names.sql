-- Those tasks of a job that have one of some names: name, number, id, and what they were asked for as.
SELECT coalesce(jsonb_agg(jsonb_build_array(tasks.name, tasks.n, tasks.id, tasks.request_hash)), '[]')::text
FROM perdure_tasks AS tasks
WHERE tasks.job = %(job)s::bigint
AND tasks.name IN (SELECT value FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value))
