-- The tasks whose turn it is at gates of a batch that have room, locked: number, lane, state, gate, and whether this is the last of
-- its gates. Where it is nobody's turn, it is noted of those gates at which nobody waits any more. All are kept from others.
-- And the server's time.
WITH room AS MATERIALIZED (
    SELECT
        asked.place, asked.value::bigint AS gate, gates.sort, gates.name, gates.key,
        gates.slots - (
            SELECT count(*) FROM perdure_slots AS slots
            WHERE slots.gate = asked.value::bigint AND (slots.free_us IS NULL OR slots.free_us > %(now)s::bigint)
        ) AS free
    FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
    JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[asked.value::bigint])
    WHERE (
        SELECT live.turn FROM perdure_live AS live WHERE live.gate = asked.value::bigint ORDER BY live.turn LIMIT 1
    ) IS NOT NULL
),
next AS MATERIALIZED (
    SELECT room.place, room.gate, room.sort, room.name, room.key, waiting.n, waiting.lane, waiting.state, waiting.turn
    FROM room
    CROSS JOIN LATERAL (
        SELECT live.n, live.lane, live.state, live.turn
        FROM perdure_live AS live
        WHERE live.gate = room.gate
        ORDER BY live.turn
        LIMIT greatest(room.free, 0)
        FOR NO KEY UPDATE OF live
    ) AS waiting
),
quiet AS (
    UPDATE perdure_gates AS gates
    SET waited = false
    WHERE gates.gate = ANY (ARRAY(
        SELECT asked.value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
    )) AND gates.waited AND (SELECT count(*) FROM next) = 0
    AND (
        SELECT live.turn FROM perdure_live AS live WHERE live.gate = gates.gate ORDER BY live.turn LIMIT 1
    ) IS NULL
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    next.n, next.lane, next.state, next.gate,
    tasks.options -> 'gates' -> -1 ->> 0 = next.sort AND tasks.options -> 'gates' -> -1 ->> 1 = next.name
    AND tasks.options -> 'gates' -> -1 ->> 2 = next.key
) ORDER BY next.place, next.turn), '[]')::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM next
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[next.n])
