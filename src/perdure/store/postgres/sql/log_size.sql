-- How much is stored of the logs of live attempts: task, highest sequence, bytes of all messages.
SELECT coalesce(json_agg(json_build_array(sizes.n, sizes.highest, sizes.size)), '[]')::text
FROM (
    SELECT live.n, max(logs.sequence) AS highest, sum(octet_length(logs.message)) AS size
    FROM json_array_elements_text(%(batch)s::json) AS asked (n)
    JOIN perdure_live AS live ON live.n = asked.n::bigint
    JOIN perdure_logs AS logs ON logs.n = live.n AND logs.fence = live.fence
    GROUP BY live.n
) AS sizes
