-- Remove the edges of tasks that go.
DELETE FROM perdure_edges AS edges
USING (
    SELECT above.parent, above.child
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
    JOIN perdure_edges AS above ON above.child = ANY (ARRAY[gone.value::bigint])
    UNION
    SELECT below.parent, below.child
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
    JOIN perdure_edges AS below ON below.parent = ANY (ARRAY[gone.value::bigint])
) AS going
WHERE edges.parent = ANY (ARRAY[going.parent]) AND edges.child = ANY (ARRAY[going.child])
