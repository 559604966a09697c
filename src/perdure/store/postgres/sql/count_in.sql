-- Count into counters: what changes is appended.
INSERT INTO perdure_count_changes (lane, state, change)
SELECT (value ->> 0)::bigint, value ->> 1, (value ->> 2)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb)
