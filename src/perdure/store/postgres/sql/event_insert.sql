-- Append lines of history that no other row tells.
INSERT INTO perdure_events (organization, n, job, at_us, generation, type, actor, initiator, data)
SELECT
    value ->> 0, (value ->> 1)::bigint, (value ->> 2)::bigint, %(now)s::bigint, (value ->> 3)::bigint, value ->> 4,
    value ->> 5, value ->> 6, value ->> 7
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
ORDER BY place
