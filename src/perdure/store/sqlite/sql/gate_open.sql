-- The tasks whose turn it is at gates of a batch that have room: number, lane, state, gate, and whether this is the last of its gates.
WITH RECURSIVE waited AS MATERIALIZED (
    SELECT asked.key AS place, asked.value AS gate, (
        SELECT min(live.turn) FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = asked.value
    ) AS turn
    FROM json_each(:batch) AS asked
),
room AS MATERIALIZED (
    SELECT
        waited.place, waited.gate, waited.turn, gates.sort, gates.name, gates.key,
        gates.slots - (
            SELECT count(*) FROM perdure_slots AS slots
            WHERE slots.gate = waited.gate AND (slots.free_us IS NULL OR slots.free_us > :now)
        ) AS free
    FROM waited
    CROSS JOIN perdure_gates AS gates ON gates.gate = waited.gate
    WHERE waited.turn IS NOT NULL
),
next (place, gate, wanted, turn) AS (
    SELECT place, gate, free, turn FROM room WHERE free > 0
    UNION ALL
    SELECT
        next.place, next.gate, next.wanted - 1,
        (
            SELECT min(live.turn) FROM perdure_live AS live INDEXED BY perdure_live_at_gate
            WHERE live.gate = next.gate AND live.turn > next.turn
        )
    FROM next
    WHERE next.wanted > 1 AND next.turn IS NOT NULL
)
SELECT json_group_array(json_array(
    live.n, live.lane, live.state, next.gate,
    tasks.options ->> '$.gates[#-1][0]' = gates.sort AND tasks.options ->> '$.gates[#-1][1]' = gates.name
    AND tasks.options ->> '$.gates[#-1][2]' = gates.key
) ORDER BY next.place, next.turn)
FROM next
CROSS JOIN perdure_live AS live INDEXED BY perdure_live_at_gate ON live.gate = next.gate AND live.turn = next.turn
CROSS JOIN perdure_tasks AS tasks ON tasks.n = live.n
CROSS JOIN perdure_gates AS gates ON gates.gate = next.gate
