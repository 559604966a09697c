-- Mark dead letters as done with.
UPDATE perdure_ends AS ends
SET discarded_us = %(now)s::bigint
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS done (value)
WHERE ends.n = ANY (ARRAY[done.value::bigint]) AND ends.state = 'dead_lettered' AND ends.discarded_us IS NULL
