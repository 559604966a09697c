-- Group the edges that leave ended tasks by child. The children's rows are locked, in ascending order, so that of two
-- transactions that end parents of the same child the second counts on what the first has committed.
-- stages: touched
WITH counted AS MATERIALIZED (
    SELECT
        edges.child,
        count(*) FILTER (WHERE ended.good) AS good,
        count(*) FILTER (WHERE NOT ended.good) AS bad,
        count(*) FILTER (WHERE NOT ended.good AND edges.policy = 'continue') AS excused
    FROM jsonb_to_recordset(%(ended)s::jsonb) AS ended (n bigint, good boolean)
    CROSS JOIN LATERAL (
        SELECT edges.child, edges.policy FROM perdure_edges AS edges
        WHERE edges.parent >= ended.n AND edges.parent <= ended.n
        ORDER BY edges.parent, edges.child
        OFFSET 0
    ) AS edges
    GROUP BY edges.child
    ORDER BY edges.child
),
locked AS MATERIALIZED (
    SELECT counted.*
    FROM counted
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[counted.child])
    ORDER BY counted.child
    FOR UPDATE OF live
)
SELECT jsonb_agg(to_jsonb(locked))::text FROM locked
