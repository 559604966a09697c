-- Those tasks of a batch of ids that exist already: place and state.
SELECT json_group_array(json_array(asked.key, coalesce(live.state, ends.state)))
FROM json_each(:batch) AS asked
CROSS JOIN tasks ON tasks.organization = asked.value ->> 0 AND tasks.id = asked.value ->> 1
LEFT JOIN live ON live.n = tasks.n
LEFT JOIN ends ON ends.n = tasks.n
