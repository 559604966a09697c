-- The tasks that still wait for parents of a batch. Locks them, and what the batch itself waits for: from here to the
-- commit nobody counts them down or ends them, so that the count that follows is right. The frontier goes first, as in a
-- cascade; each list is taken whole before the next.
WITH redriven AS MATERIALIZED (
    SELECT item.value::bigint AS n FROM jsonb_array_elements_text(%(batch)s::jsonb) AS item (value)
),
parents AS MATERIALIZED (
    SELECT DISTINCT edges.parent AS n
    FROM redriven
    JOIN perdure_edges AS edges ON edges.child = ANY (ARRAY[redriven.n])
),
followed AS MATERIALIZED (
    SELECT frontier.n
    FROM parents
    JOIN perdure_frontier AS frontier ON frontier.n = ANY (ARRAY[parents.n])
    ORDER BY frontier.n
    FOR UPDATE OF frontier
),
family AS MATERIALIZED (
    SELECT live.n, live.state, live.waits
    FROM (
        SELECT parents.n FROM parents
        UNION
        SELECT edges.child
        FROM redriven
        JOIN perdure_edges AS edges ON edges.parent = ANY (ARRAY[redriven.n])
    ) AS each
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[each.n])
    WHERE (SELECT count(*) FROM followed) >= 0
    ORDER BY live.n
    FOR UPDATE OF live
)
SELECT coalesce(jsonb_agg(DISTINCT family.n), '[]')::text
FROM redriven
JOIN perdure_edges AS edges ON edges.parent = ANY (ARRAY[redriven.n])
JOIN family ON family.n = edges.child
WHERE family.state = 'pending' AND family.waits > 0
