-- Tasks wait for so many parents more. Their rows are locked already.
UPDATE perdure_live AS live
SET waits = live.waits + (more.value ->> 1)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) AS more (value)
WHERE live.n = ANY (ARRAY[(more.value ->> 0)::bigint]) AND live.state = 'pending' AND live.waits > 0
