-- Let tasks that waited at the last of their gates join their lanes: a batch of [gate, number of the task], in order.
UPDATE perdure_live AS live
SET waits = 0, gate = NULL, turn = NULL, state = 'queued', seq = %(first)s::bigint + passed.place, queued_us = %(now)s::bigint,
    due_us = least(live.due_us, %(now)s::bigint)
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS passed (value, place)
WHERE live.n = ANY (ARRAY[(passed.value ->> 1)::bigint]) AND coalesce(live.gate, 0) = (passed.value ->> 0)::bigint
AND coalesce(live.state, '') IN ('pending', 'retrying')
