-- Make lanes that are not there yet; those that are, are in use again. A lane whose use is not in doubt is not locked: the
-- transaction may be a caller's own, and stay open.
INSERT INTO perdure_lanes AS lanes (organization, queue, kind, capabilities, priority)
SELECT value ->> 0, value ->> 1, value ->> 2, (value ->> 3)::jsonb, (value ->> 4)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
WHERE NOT EXISTS (
    SELECT 1
    FROM perdure_lanes AS known
    WHERE known.organization = asked.value ->> 0
    AND known.queue = asked.value ->> 1
    AND known.kind = asked.value ->> 2
    AND known.capabilities = (asked.value ->> 3)::jsonb
    AND known.priority = (asked.value ->> 4)::bigint
    AND known.idle_since_us IS NULL
)
ORDER BY place
ON CONFLICT (organization, queue, kind, capabilities, priority) DO UPDATE SET idle_since_us = NULL
WHERE lanes.idle_since_us IS NOT NULL
