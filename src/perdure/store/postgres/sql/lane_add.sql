-- Make lanes that are not there yet; those that are, are in use again.
INSERT INTO perdure_lanes AS lanes (organization, queue, kind, capabilities, priority)
SELECT value ->> 0, value ->> 1, value ->> 2, (value ->> 3)::jsonb, (value ->> 4)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
ORDER BY place
ON CONFLICT (organization, queue, kind, capabilities, priority) DO UPDATE SET idle_since_us = NULL
WHERE lanes.idle_since_us IS NOT NULL
