-- Remove the keys of tasks that go, where they hold them and lose them now.
DELETE FROM perdure_unique_keys AS keys
WHERE (organization, key, task_id) IN (
    SELECT tasks.organization, tasks.options -> 'unique' ->> 'key', tasks.id
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_tasks AS tasks ON tasks.n = asked.value
    WHERE tasks.options -> 'unique' IS NOT NULL
)
AND left_state IS NULL
