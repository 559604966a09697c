-- Take back the slots of tasks of a batch that have ended, but those of starts at a rate; returns the gates, if tasks may wait there.
-- They are kept from others until the commit, in the order of their names. What is at them shows to later statements only.
WITH gone AS (
    DELETE FROM perdure_slots AS slots
    WHERE slots.n = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))) AND slots.free_us IS NULL
    RETURNING slots.gate
)
SELECT CASE WHEN gates.waited THEN gates.gate END
FROM (SELECT DISTINCT gate FROM gone) AS freed
JOIN perdure_gates AS gates ON gates.gate = ANY (ARRAY[freed.gate])
ORDER BY gates.organization, gates.sort, gates.name, gates.key
FOR NO KEY UPDATE OF gates
