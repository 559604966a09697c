-- What became of the attempts of settlements that did not apply: place, state of the task by it, whether the digest is
-- the same, whether a late result is known.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    item.place - 1, attempts.task_state, attempts.digest = item.value ->> 3, tasks.n, attempts.generation,
    EXISTS (
        SELECT 1 FROM perdure_events AS events
        WHERE events.n = tasks.n AND events.type = 'late_result' AND events.data::jsonb ->> 'attempt' = item.value ->> 2
    ),
    tasks.initiator
) ORDER BY item.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
JOIN perdure_tasks AS tasks ON tasks.organization = item.value ->> 0 AND tasks.id = item.value ->> 1
JOIN perdure_attempts AS attempts ON attempts.n = tasks.n AND attempts.id = item.value ->> 2
