-- Those of many tasks that have ended. A result is text where it is JSON, else hexadecimal.
SELECT json_group_array(json_array(
    tasks.id,
    ends.state,
    ends.reason,
    iif(ends.result_encoding = 'json', CAST(ends.result AS TEXT), hex(ends.result)),
    ends.result_encoding,
    json(ends.error),
    ends.summary
) ORDER BY asked.key)
FROM json_each(:batch) AS asked
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = :organization AND tasks.id = asked.value
CROSS JOIN perdure_ends AS ends ON ends.n = tasks.n
