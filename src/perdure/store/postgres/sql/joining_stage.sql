-- Stage tasks: rows of number, lane, state.
-- stages: joining
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'position', row.place + jsonb_array_length(%(joining)s::jsonb), 'n', (row.value ->> 0)::bigint,
    'lane', (row.value ->> 1)::bigint, 'from_state', row.value ->> 2
) ORDER BY row.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS row (value, place)
