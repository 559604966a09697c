-- The tasks that were cancelled because of tasks of a batch, directly or through one another: number, lane, state,
-- organization, generation, initiator, who redrove.
-- Those with a parent that was removed since are left alone: they could never run as they were meant to.
-- Locks them, after what a cascade may just be dealing with: asked again, it sees what that cascade has done. One that
-- moved while its row was waited for has no state.
WITH RECURSIVE redriven AS MATERIALIZED (
    SELECT (item.value ->> 0)::bigint AS n, item.value ->> 1 AS actor
    FROM jsonb_array_elements(%(batch)s::jsonb) AS item (value)
),
fallen (n, actor) AS (
    SELECT redriven.n, redriven.actor
    FROM redriven
    UNION
    SELECT ends.n, fallen.actor
    FROM fallen
    JOIN perdure_edges AS edges ON edges.parent = ANY (ARRAY[fallen.n])
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[edges.child])
    WHERE ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet')
    AND (SELECT count(*) FROM perdure_edges AS above WHERE above.child = ends.n)
        = (SELECT tasks.parents FROM perdure_tasks AS tasks WHERE tasks.n = ends.n)
),
revived AS MATERIALIZED (
    SELECT fallen.n, min(fallen.actor) AS actor
    FROM fallen
    WHERE fallen.n NOT IN (SELECT redriven.n FROM redriven)
    GROUP BY fallen.n
),
followed AS MATERIALIZED (
    SELECT frontier.n
    FROM revived
    JOIN perdure_frontier AS frontier ON frontier.n = ANY (ARRAY[revived.n])
    ORDER BY frontier.n
    FOR UPDATE OF frontier
),
locked AS MATERIALIZED (
    SELECT ends.n, ends.lane, ends.state, ends.organization, ends.generation
    FROM revived
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[revived.n])
    WHERE (SELECT count(*) FROM followed) >= 0
    AND ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet')
    ORDER BY ends.n
    FOR UPDATE OF ends
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    revived.n, locked.lane, locked.state, locked.organization, locked.generation, tasks.initiator, revived.actor
)), '[]')::text
FROM revived
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[revived.n])
LEFT JOIN locked ON locked.n = revived.n
