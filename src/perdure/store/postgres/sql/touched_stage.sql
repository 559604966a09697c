-- Look at tasks anew whose parents were counted anew.
-- stages: touched
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'child', asked.value::bigint, 'good', 0, 'bad', 0, 'excused', 0
)), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
