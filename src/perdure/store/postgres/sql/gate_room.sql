-- How many slots are free at gates of a batch at which tasks wait.
SELECT coalesce(jsonb_agg(jsonb_build_array(room.gate, room.slots - room.taken)), '[]')::text
FROM (
    SELECT
        gates.gate, gates.slots,
        (
            SELECT count(*) FROM perdure_slots AS slots
            WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > %(now)s::bigint)
        ) AS taken
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
    JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[asked.value::bigint])
    WHERE (SELECT live.turn FROM perdure_live AS live WHERE live.gate = gates.gate ORDER BY live.turn LIMIT 1) IS NOT NULL
) AS room
WHERE room.taken < room.slots
