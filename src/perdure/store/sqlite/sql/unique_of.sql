-- Which of these tasks have a key: number, organization, task, options.
SELECT json_group_array(json_array(tasks.n, tasks.organization, tasks.id, tasks.options) ORDER BY asked.key)
FROM json_each(:batch) AS asked
CROSS JOIN perdure_tasks AS tasks ON tasks.n = asked.value
WHERE tasks.options -> 'unique' IS NOT NULL
