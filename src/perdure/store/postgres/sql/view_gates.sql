-- Gates by number, in the order of the batch, with who has their slots and who is next; at most %(shown)s tasks of each are told
-- and %(most)s counted.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    gates.sort, gates.name, gates.key, gates.slots, gates.per_us, gates.when_full,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM perdure_slots AS slots
            WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > %(now)s::bigint)
            LIMIT %(most)s::bigint
        ) AS counted
    ),
    (
        SELECT count(*) FROM (
            SELECT 1 FROM perdure_live AS live WHERE live.gate = gates.gate LIMIT %(most)s::bigint
        ) AS counted
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(
            tasks.id, coalesce(live.state, ends.state), live.worker, taken.taken_us, taken.free_us
        ) ORDER BY taken.n, taken.taken_us), '[]')
        FROM (
            SELECT slots.n, slots.taken_us, slots.free_us FROM perdure_slots AS slots
            WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > %(now)s::bigint)
            ORDER BY slots.n, slots.taken_us
            LIMIT %(shown)s::bigint
        ) AS taken
        LEFT JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[taken.n])
        LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[taken.n])
        LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[taken.n])
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(tasks.id, tasks.created_us) ORDER BY waiting.turn), '[]')
        FROM (
            SELECT live.n, live.turn FROM perdure_live AS live
            WHERE live.gate = gates.gate
            ORDER BY live.turn
            LIMIT %(shown)s::bigint
        ) AS waiting
        JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[waiting.n])
    )
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(gates)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[asked.value::bigint])
WHERE gates.organization = %(organization)s::text
