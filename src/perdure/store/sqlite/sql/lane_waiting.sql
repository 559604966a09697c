-- Since when the first tasks of a batch of [lane, place of its first task] wait: [[lane, instant], ...].
SELECT json_group_array(json_array(asked.value ->> 0, live.queued_us))
FROM json_each(:batch) AS asked
CROSS JOIN perdure_live AS live INDEXED BY perdure_live_ready
    ON live.lane = asked.value ->> 0 AND live.seq = asked.value ->> 1 AND live.state = 'queued'
