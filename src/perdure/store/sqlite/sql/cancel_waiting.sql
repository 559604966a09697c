-- Stage the waiting tasks of a batch of cancels.
INSERT OR IGNORE INTO ending (n, lane, job, from_state, state, reason, actor, cancel_text, cancel_note)
SELECT
    live.n, live.lane, live.job, live.state, 'cancelled', asked.value ->> 2, asked.value ->> 1,
    asked.value ->> 3, asked.value ->> 4
FROM json_each(:batch) AS asked
CROSS JOIN perdure_live AS live ON live.n = asked.value ->> 0
WHERE live.state IN ('pending', 'queued', 'retrying')
