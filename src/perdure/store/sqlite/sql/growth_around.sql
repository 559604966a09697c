-- How many children and parents the tasks of a batch have, and whether one task is among these parents.
SELECT json_group_array(json_array(
    asked.value,
    (SELECT count(*) FROM perdure_edges AS edges WHERE edges.parent = asked.value),
    (SELECT count(*) FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child WHERE edges.child = asked.value),
    EXISTS (SELECT 1 FROM perdure_edges AS edges WHERE edges.parent = :parent AND edges.child = asked.value)
))
FROM json_each(:batch) AS asked
