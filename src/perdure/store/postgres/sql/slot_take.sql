-- Give slots: a batch of [gate, number of the task]. Who took one at the same instant and started takes another.
INSERT INTO perdure_slots (gate, n, taken_us)
SELECT
    (value ->> 0)::bigint, (value ->> 1)::bigint,
    greatest(%(now)s::bigint, (
        SELECT max(slots.taken_us) + 1 FROM perdure_slots AS slots
        WHERE slots.gate = (value ->> 0)::bigint AND slots.n = (value ->> 1)::bigint
    ))
FROM jsonb_array_elements(%(batch)s::jsonb)
