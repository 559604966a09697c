-- Tasks that go leave their keys, where these are still theirs, the state in which they ended.
UPDATE perdure_unique_keys AS keys
SET left_state = ends.state
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[asked.value::bigint])
JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[tasks.n])
WHERE tasks.options -> 'unique' IS NOT NULL AND keys.organization = tasks.organization
AND keys.key = tasks.options -> 'unique' ->> 'key' AND keys.task_id = tasks.id AND keys.until_us > %(now)s::bigint
