-- Store lines of live attempts' logs. None is older than its lease.
INSERT INTO perdure_logs (n, fence, sequence, attempt_id, at_us, level, message, dropped)
SELECT
    live.n, live.fence, (line.value ->> 1)::integer, live.attempt_id,
    greatest(live.leased_us, %(now)s::bigint - (line.value ->> 2)::bigint),
    line.value ->> 3, line.value ->> 4, (line.value ->> 5)::bigint
FROM json_array_elements(%(batch)s::json) AS line (value)
JOIN perdure_live AS live ON live.n = (line.value ->> 0)::bigint
