-- Give keys back that were taken for tasks that were refused: rows of organization, key, task.
DELETE FROM perdure_unique_keys AS keys
WHERE (organization, key, task_id) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:batch))
