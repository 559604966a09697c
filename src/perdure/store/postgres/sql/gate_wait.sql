-- Let tasks wait at gates, whose rows are locked: a batch of [number, gate, turn]. Whoever gives a slot back there is to know of it.
WITH told AS (
    UPDATE perdure_gates AS gates
    SET waited = true
    WHERE gates.gate = ANY (ARRAY(
        SELECT (blocked.value ->> 1)::bigint FROM jsonb_array_elements(%(batch)s::jsonb) AS blocked (value)
    )) AND NOT gates.waited
)
UPDATE perdure_live AS live
SET waits = 0, gate = (blocked.value ->> 1)::bigint, turn = (blocked.value ->> 2)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) AS blocked (value)
WHERE live.n = ANY (ARRAY[(blocked.value ->> 0)::bigint]) AND coalesce(live.state, '') IN ('pending', 'retrying')
