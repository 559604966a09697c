-- Ask the holders of the tasks of a batch to stop. Their rows are locked already.
UPDATE perdure_live AS live
SET state = 'cancelling',
    cancel_us = %(now)s::bigint,
    cancel_ends_us = %(now)s::bigint + (asked.value ->> 5)::bigint,
    cancel_actor = asked.value ->> 1,
    cancel_reason = asked.value ->> 2,
    cancel_text = asked.value ->> 3,
    cancel_note = asked.value ->> 4
FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
WHERE live.n = ANY (ARRAY[(asked.value ->> 0)::bigint]) AND live.state IN ('leased', 'running')
