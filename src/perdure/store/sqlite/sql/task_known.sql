-- Those tasks of a batch of ids that exist already: place and state.
SELECT json_group_array(json_array(asked.key, coalesce(live.state, ends.state)))
FROM json_each(:batch) AS asked
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = asked.value ->> 0 AND tasks.id = asked.value ->> 1
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
