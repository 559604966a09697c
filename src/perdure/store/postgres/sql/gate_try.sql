-- Lock those gates of a batch that nobody else has: all that are there, and those that are locked now.
WITH wanted AS MATERIALIZED (
    SELECT gates.gate
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
    JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[asked.value::bigint])
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
