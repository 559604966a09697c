-- How many slots are free at gates of a batch at which tasks wait.
SELECT json_group_array(json_array(gate, slots - taken))
FROM (
    SELECT
        gates.gate, gates.slots,
        (
            SELECT count(*) FROM perdure_slots AS slots
            WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > :now)
        ) AS taken
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_gates AS gates ON gates.gate = asked.value
    WHERE EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = gates.gate)
)
WHERE taken < slots
