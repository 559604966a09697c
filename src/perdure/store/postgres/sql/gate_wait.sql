-- Let tasks wait at gates: a batch of [number, gate, turn].
UPDATE perdure_live AS live
SET waits = 0, gate = (blocked.value ->> 1)::bigint, turn = (blocked.value ->> 2)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) AS blocked (value)
WHERE live.n = ANY (ARRAY[(blocked.value ->> 0)::bigint]) AND coalesce(live.state, '') IN ('pending', 'retrying')
