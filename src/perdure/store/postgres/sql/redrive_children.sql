-- The tasks that still wait for parents of a batch. Locks them, and what the batch itself waits for: from here to the
-- commit nobody counts them down or ends them, so that the count that follows is right. The frontier goes first, as in a
-- cascade; each list is taken whole before the next.
WITH redriven AS MATERIALIZED (
    SELECT item.value::bigint AS n FROM jsonb_array_elements_text(%(batch)s::jsonb) AS item (value)
),
parents AS MATERIALIZED (
    SELECT DISTINCT edges.parent AS n
    FROM redriven
    JOIN perdure_edges AS edges ON edges.child = redriven.n
),
followed AS MATERIALIZED (
    SELECT frontier.n
    FROM perdure_frontier AS frontier
    WHERE frontier.n IN (SELECT parents.n FROM parents)
    ORDER BY frontier.n
    FOR UPDATE
),
family AS MATERIALIZED (
    SELECT live.n, live.state, live.waits
    FROM perdure_live AS live
    WHERE (SELECT count(*) FROM followed) >= 0
    AND live.n IN (
        SELECT parents.n FROM parents
        UNION
        SELECT edges.child
        FROM redriven
        JOIN perdure_edges AS edges ON edges.parent = redriven.n
    )
    ORDER BY live.n
    FOR UPDATE
)
SELECT coalesce(jsonb_agg(DISTINCT family.n), '[]')::text
FROM family
JOIN perdure_edges AS edges ON edges.child = family.n
JOIN redriven ON redriven.n = edges.parent
WHERE family.state = 'pending' AND family.waits > 0
