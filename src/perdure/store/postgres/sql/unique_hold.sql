-- Give keys to tasks: rows of organization, key, task, until. The keys are locked already.
UPDATE perdure_unique_keys AS keys
SET task_id = asked.value ->> 2, taken_us = %(now)s::bigint, until_us = (asked.value ->> 3)::bigint, left_state = NULL
FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
WHERE keys.organization = ANY (ARRAY[asked.value ->> 0]) AND keys.key = ANY (ARRAY[asked.value ->> 1])
