-- Gates by number, in the order of the batch, with who has their slots and who is next; at most :shown tasks of each are told and
-- :most counted.
SELECT json_group_array(json_array(
    gates.sort, gates.name, gates.key, gates.slots, gates.per_us, gates.when_full,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM perdure_slots AS slots
            WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > :now)
            LIMIT :most
        )
    ),
    (
        SELECT count(*) FROM (
            SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = gates.gate LIMIT :most
        )
    ),
    json((
        SELECT json_group_array(json_array(
            tasks.id, coalesce(live.state, ends.state), live.worker, taken.taken_us, taken.free_us
        ) ORDER BY taken.n, taken.taken_us)
        FROM (
            SELECT slots.n, slots.taken_us, slots.free_us FROM perdure_slots AS slots
            WHERE slots.gate = gates.gate AND (slots.free_us IS NULL OR slots.free_us > :now)
            ORDER BY slots.n, slots.taken_us
            LIMIT :shown
        ) AS taken
        LEFT JOIN perdure_tasks AS tasks ON tasks.n = taken.n
        LEFT JOIN perdure_live AS live ON live.n = taken.n
        LEFT JOIN perdure_ends AS ends ON ends.n = taken.n
    )),
    json((
        SELECT json_group_array(json_array(tasks.id, tasks.created_us) ORDER BY waiting.turn)
        FROM (
            SELECT live.n, live.turn FROM perdure_live AS live INDEXED BY perdure_live_at_gate
            WHERE live.gate = gates.gate
            ORDER BY live.turn
            LIMIT :shown
        ) AS waiting
        CROSS JOIN perdure_tasks AS tasks ON tasks.n = waiting.n
    ))
) ORDER BY asked.key)
FROM json_each(:gates) AS asked
CROSS JOIN perdure_gates AS gates ON gates.gate = asked.value
WHERE gates.organization = :organization
