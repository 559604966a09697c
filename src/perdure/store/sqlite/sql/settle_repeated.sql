-- What became of the attempts of settlements that could not be staged: place, state of the task by it, whether the digest is the same, whether a late result is known.
SELECT json_group_array(json_array(
    item.key, attempts.task_state, attempts.digest = item.value ->> 3, tasks.n, attempts.generation,
    EXISTS (
        SELECT 1 FROM perdure_events AS events INDEXED BY perdure_events_by_task
        WHERE events.n = tasks.n AND events.type = 'late_result' AND events.data ->> '$.attempt' = item.value ->> 2
    ),
    tasks.initiator
))
FROM json_each(:batch) AS item
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = item.value ->> 0 AND tasks.id = item.value ->> 1
CROSS JOIN perdure_attempts AS attempts ON attempts.n = tasks.n AND attempts.id = item.value ->> 2
