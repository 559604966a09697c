-- New tasks of a batch have gates.
UPDATE perdure_live AS live
SET gated = 1
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS fresh (value)
WHERE live.n = ANY (ARRAY[fresh.value::bigint]) AND live.gated = 0
