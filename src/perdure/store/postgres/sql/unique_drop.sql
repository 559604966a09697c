-- Give keys back that were taken for tasks that were refused: rows of organization, key, task. They are locked already.
DELETE FROM perdure_unique_keys AS keys
USING jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
WHERE keys.organization = ANY (ARRAY[asked.value ->> 0]) AND keys.key = ANY (ARRAY[asked.value ->> 1])
AND keys.task_id = asked.value ->> 2
