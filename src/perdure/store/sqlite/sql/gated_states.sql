-- How the tasks of a batch stand: number and state.
SELECT json_group_array(json_array(asked.value, coalesce(live.state, ends.state)))
FROM json_each(:batch) AS asked
LEFT JOIN perdure_live AS live ON live.n = asked.value
LEFT JOIN perdure_ends AS ends ON ends.n = asked.value
