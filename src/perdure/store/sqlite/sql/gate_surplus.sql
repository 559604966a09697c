-- The tasks at gates that have to make way for newer ones, as [organization, id]: all but the newest of those that wait there or
-- have a slot. A batch of [gate, how many may stay].
SELECT json_group_array(json_array(tasks.organization, tasks.id) ORDER BY tasks.n)
FROM (
    SELECT
        at_gate.n, asked.value ->> 1 AS stay,
        row_number() OVER (PARTITION BY asked.value ->> 0 ORDER BY at_gate.n DESC) AS place
    FROM json_each(:batch) AS asked
    CROSS JOIN (
        SELECT gate, n FROM perdure_slots AS slots WHERE free_us IS NULL
        UNION ALL
        SELECT gate, n FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE gate IS NOT NULL
    ) AS at_gate ON at_gate.gate = asked.value ->> 0
) AS known
CROSS JOIN perdure_live AS live ON live.n = known.n
CROSS JOIN perdure_tasks AS tasks ON tasks.n = known.n
WHERE known.place > known.stay AND live.state <> 'cancelling'
