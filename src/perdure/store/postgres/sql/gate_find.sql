-- The gates of a batch in its order: number, slots, how many are taken, whether tasks wait, what happens when it is full.
-- And the server's time.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    gates.gate, gates.slots,
    (
        SELECT count(*) FROM perdure_slots AS slots
        WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > %(now)s::bigint)
    ),
    (SELECT live.turn FROM perdure_live AS live WHERE live.gate = gates.gate ORDER BY live.turn LIMIT 1) IS NOT NULL,
    gates.when_full
) ORDER BY asked.place), '[]')::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_gates AS gates
    ON gates.organization = ANY (ARRAY[asked.value ->> 0])
    AND gates.sort = ANY (ARRAY[asked.value ->> 1])
    AND gates.name = ANY (ARRAY[asked.value ->> 2])
    AND gates.key = ANY (ARRAY[asked.value ->> 3])
