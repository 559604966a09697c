-- How the holders of keys stand, and the tasks that ask for them, in the order of the batch (organization, key, task):
-- holder, since when, its state, whether it has a job, and the state of the task that asks, if it is there already.
SELECT json_group_array(json_array(
    keys.task_id, keys.taken_us, coalesce(live.state, ends.state, keys.left_state), held.job IS NOT NULL,
    (
        SELECT coalesce(own_live.state, own_ends.state)
        FROM perdure_tasks AS own
        LEFT JOIN perdure_live AS own_live ON own_live.n = own.n
        LEFT JOIN perdure_ends AS own_ends ON own_ends.n = own.n
        WHERE own.organization = asked.value ->> 0 AND own.id = asked.value ->> 2
    )
) ORDER BY asked.key)
FROM json_each(:batch) AS asked
CROSS JOIN perdure_unique_keys AS keys ON keys.organization = asked.value ->> 0 AND keys.key = asked.value ->> 1
LEFT JOIN perdure_tasks AS held ON held.organization = keys.organization AND held.id = keys.task_id
LEFT JOIN perdure_live AS live ON live.n = held.n
LEFT JOIN perdure_ends AS ends ON ends.n = held.n
