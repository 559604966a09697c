-- Which of these tasks have a key: number, organization, task, options.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    tasks.n, tasks.organization, tasks.id, tasks.options::text
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[asked.value::bigint])
WHERE tasks.options -> 'unique' IS NOT NULL
