-- Remove the keys of tasks that go, where they hold them and lose them now.
DELETE FROM perdure_unique_keys AS keys
USING jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[asked.value::bigint])
WHERE tasks.options -> 'unique' IS NOT NULL AND keys.organization = tasks.organization
AND keys.key = tasks.options -> 'unique' ->> 'key' AND keys.task_id = tasks.id AND keys.left_state IS NULL
