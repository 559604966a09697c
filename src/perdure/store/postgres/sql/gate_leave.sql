-- Tasks of a batch have passed the gates at which they waited.
UPDATE perdure_live AS live
SET gate = NULL, turn = NULL, due_us = least(live.due_us, %(due)s::bigint)
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS passed (value)
WHERE live.n = ANY (ARRAY[passed.value::bigint]) AND live.gate IS NOT NULL
