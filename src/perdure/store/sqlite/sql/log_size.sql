-- How much is stored of the logs of live attempts: task, highest sequence, bytes of all messages.
SELECT json_group_array(json_array(n, highest, size))
FROM (
    SELECT live.n, max(logs.sequence) AS highest, sum(octet_length(logs.message)) AS size
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_live AS live ON live.n = asked.value
    CROSS JOIN perdure_logs AS logs ON logs.n = live.n AND logs.fence = live.fence
    GROUP BY live.n
)
