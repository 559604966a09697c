-- Tasks that go leave their keys, where these are still theirs, the state in which they ended.
UPDATE perdure_unique_keys AS keys
SET left_state = gone.state
FROM (
    SELECT tasks.organization, tasks.options -> 'unique' ->> 'key' AS key, tasks.id, ends.state
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_tasks AS tasks ON tasks.n = asked.value
    JOIN perdure_ends AS ends ON ends.n = tasks.n
    WHERE tasks.options -> 'unique' IS NOT NULL
) AS gone
WHERE keys.organization = gone.organization AND keys.key = gone.key AND keys.task_id = gone.id AND keys.until_us > :now
