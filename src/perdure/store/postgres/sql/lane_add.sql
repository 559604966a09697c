-- Make lanes that are not there yet.
INSERT INTO perdure_lanes (organization, queue, kind, capabilities, priority)
SELECT value ->> 0, value ->> 1, value ->> 2, (value ->> 3)::jsonb, (value ->> 4)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
ORDER BY place
ON CONFLICT DO NOTHING
