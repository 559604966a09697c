-- Give keys to tasks: rows of organization, key, task, until.
UPDATE perdure_unique_keys AS keys
SET task_id = asked.value ->> 2, taken_us = :now, until_us = asked.value ->> 3, left_state = NULL
FROM json_each(:batch) AS asked
WHERE keys.organization = asked.value ->> 0 AND keys.key = asked.value ->> 1
