-- The gates of a batch at which tasks may wait. All of them are kept from others until the commit, in the order of their names. What
-- is at them shows to later statements only.
WITH taken AS MATERIALIZED (
    SELECT gates.gate, gates.waited
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
    JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[asked.value::bigint])
    ORDER BY gates.organization, gates.sort, gates.name, gates.key
    FOR NO KEY UPDATE OF gates
)
SELECT coalesce(jsonb_agg(taken.gate), '[]')::text FROM taken WHERE taken.waited
