-- The tasks of a batch: number, state, how many parents they wait for. A transaction has the file to itself.
SELECT json_group_array(json_array(asked.value, coalesce(live.state, ends.state), coalesce(live.waits, 0)))
FROM json_each(:batch) AS asked
LEFT JOIN perdure_live AS live ON live.n = asked.value
LEFT JOIN perdure_ends AS ends ON ends.n = asked.value
