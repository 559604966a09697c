-- Lock those gates of a batch of [organization, sort, name, key, ...] that are there and that nobody else has: all that are there, and
-- those that are locked now.
WITH wanted AS MATERIALIZED (
    SELECT gates.gate
    FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
    JOIN perdure_gates AS gates
        ON gates.organization = ANY (ARRAY[asked.value ->> 0])
        AND gates.sort = ANY (ARRAY[asked.value ->> 1])
        AND gates.name = ANY (ARRAY[asked.value ->> 2])
        AND gates.key = ANY (ARRAY[asked.value ->> 3])
),
had AS MATERIALIZED (
    SELECT gates.gate
    FROM wanted
    JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[wanted.gate])
    FOR NO KEY UPDATE OF gates SKIP LOCKED
)
SELECT jsonb_build_array(
    (SELECT coalesce(jsonb_agg(wanted.gate), '[]') FROM wanted), (SELECT coalesce(jsonb_agg(had.gate), '[]') FROM had)
)::text
