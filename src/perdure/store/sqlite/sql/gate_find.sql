-- The gates of a batch in its order: number, slots, how many are taken, whether tasks wait, what happens when it is full.
SELECT json_group_array(json_array(
    gates.gate, gates.slots,
    (
        SELECT count(*) FROM perdure_slots AS slots
        WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > :now)
    ),
    EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = gates.gate),
    gates.when_full
) ORDER BY asked.key)
FROM json_each(:batch) AS asked
CROSS JOIN perdure_gates AS gates
    ON gates.organization = asked.value ->> 0
    AND gates.sort = asked.value ->> 1
    AND gates.name = asked.value ->> 2
    AND gates.key = asked.value ->> 3
