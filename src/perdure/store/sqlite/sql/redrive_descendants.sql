-- The tasks that were cancelled because of tasks of a batch, directly or through one another: number, lane, state, organization,
-- generation, initiator, who redrove.
-- Those with a parent that was removed since are left alone: they could never run as they were meant to.
WITH RECURSIVE fallen (n, actor) AS (
    SELECT edges.child, redriven.value ->> 1
    FROM json_each(:batch) AS redriven
    CROSS JOIN perdure_edges AS edges ON edges.parent = redriven.value ->> 0
    CROSS JOIN perdure_ends AS ends ON ends.n = edges.child
    WHERE ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet')
    AND (SELECT count(*) FROM perdure_edges AS above WHERE above.child = ends.n)
        = (SELECT tasks.parents FROM perdure_tasks AS tasks WHERE tasks.n = ends.n)
    UNION
    SELECT edges.child, fallen.actor
    FROM fallen
    CROSS JOIN perdure_edges AS edges ON edges.parent = fallen.n
    CROSS JOIN perdure_ends AS ends ON ends.n = edges.child
    WHERE ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet')
    AND (SELECT count(*) FROM perdure_edges AS above WHERE above.child = ends.n)
        = (SELECT tasks.parents FROM perdure_tasks AS tasks WHERE tasks.n = ends.n)
)
SELECT json_group_array(json_array(
    ends.n, ends.lane, ends.state, ends.organization, ends.generation, tasks.initiator, fallen.actor
))
FROM (SELECT n, min(actor) AS actor FROM fallen GROUP BY n) AS fallen
CROSS JOIN perdure_ends AS ends ON ends.n = fallen.n
CROSS JOIN perdure_tasks AS tasks ON tasks.n = fallen.n
