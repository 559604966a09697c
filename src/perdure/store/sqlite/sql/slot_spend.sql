-- Tasks start at rates: a batch of [gate, organization, id, how long a start counts]. What starts twice at one instant
-- counts twice.
INSERT INTO perdure_slots (gate, n, taken_us, free_us)
SELECT
    spent.value ->> 0, tasks.n,
    max(:now, coalesce((
        SELECT max(slots.taken_us) + 1 FROM perdure_slots AS slots
        WHERE slots.gate = spent.value ->> 0 AND slots.n = tasks.n
    ), :now)),
    :now + (spent.value ->> 3)
FROM json_each(:batch) AS spent
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = spent.value ->> 1 AND tasks.id = spent.value ->> 2
