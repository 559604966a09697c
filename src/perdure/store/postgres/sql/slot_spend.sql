-- Tasks start at rates: a batch of [gate, organization, id, how long a start counts]. What starts twice at one instant
-- counts twice.
INSERT INTO perdure_slots (gate, n, taken_us, free_us)
SELECT
    (spent.value ->> 0)::bigint, tasks.n,
    greatest(%(now)s::bigint, (
        SELECT max(slots.taken_us) + 1 FROM perdure_slots AS slots
        WHERE slots.gate = (spent.value ->> 0)::bigint AND slots.n = tasks.n
    )),
    (spent.value ->> 3)::bigint + greatest(
        %(now)s::bigint, (SELECT live.leased_us FROM perdure_live AS live WHERE live.n = tasks.n)
    )
FROM jsonb_array_elements(%(batch)s::jsonb) AS spent (value)
JOIN perdure_tasks AS tasks
    ON tasks.organization = ANY (ARRAY[spent.value ->> 1]) AND tasks.id = ANY (ARRAY[spent.value ->> 2])
