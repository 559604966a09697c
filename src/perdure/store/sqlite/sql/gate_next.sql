-- Stage the tasks whose turn it is: the first ones at each gate of a batch of [gate, how many].
WITH RECURSIVE next (place, gate, wanted, turn) AS (
    SELECT
        asked.key, asked.value ->> 0, asked.value ->> 1,
        (SELECT min(live.turn) FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = asked.value ->> 0)
    FROM json_each(:batch) AS asked
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
INSERT INTO joining (n, lane, from_state)
SELECT live.n, live.lane, live.state
FROM next
CROSS JOIN perdure_live AS live INDEXED BY perdure_live_at_gate ON live.gate = next.gate AND live.turn = next.turn
ORDER BY next.place, next.turn
