-- Tasks that go leave their keys, where these are still theirs, the state in which they ended.
UPDATE perdure_unique_keys AS keys
SET left_state = (
    SELECT ends.state
    FROM perdure_tasks AS tasks
    JOIN perdure_ends AS ends ON ends.n = tasks.n
    WHERE tasks.organization = keys.organization AND tasks.id = keys.task_id
)
WHERE (organization, key, task_id) IN (
    SELECT tasks.organization, tasks.options -> 'unique' ->> 'key', tasks.id
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_tasks AS tasks ON tasks.n = asked.value
    WHERE tasks.options -> 'unique' IS NOT NULL
)
AND until_us > :now
