-- Hand the ended tasks of jobs on to what follows an end: rows of number, job, and whether the end is a good one.
-- stages: ended
SELECT jsonb_agg(jsonb_build_object(
    'n', (value ->> 0)::bigint, 'job', (value ->> 1)::bigint, 'good', (value ->> 2)::boolean
))::text
FROM jsonb_array_elements(%(batch)s::jsonb)
