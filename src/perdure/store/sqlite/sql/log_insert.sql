-- Store lines of live attempts' logs. None is older than its lease.
INSERT INTO perdure_logs (n, fence, sequence, attempt_id, at_us, level, message, dropped)
SELECT
    live.n, live.fence, line.value ->> 1, live.attempt_id, max(live.leased_us, :now - (line.value ->> 2)),
    line.value ->> 3, line.value ->> 4, line.value ->> 5
FROM json_each(:batch) AS line
CROSS JOIN perdure_live AS live ON live.n = line.value ->> 0
