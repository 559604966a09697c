-- How many children and parents the tasks of a batch have, and whether one task is among these parents.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    asked.n,
    (SELECT count(*) FROM perdure_edges AS edges WHERE edges.parent = ANY (ARRAY[asked.n])),
    (SELECT count(*) FROM perdure_edges AS edges WHERE edges.child = ANY (ARRAY[asked.n])),
    EXISTS (SELECT 1 FROM perdure_edges AS edges WHERE edges.parent = %(parent)s::bigint AND edges.child = asked.n)
)), '[]')::text
FROM (SELECT item.value::bigint AS n FROM jsonb_array_elements_text(%(batch)s::jsonb) AS item (value)) AS asked
