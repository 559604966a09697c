-- The tasks that were cancelled because of tasks of a batch, directly or through one another: number, lane, state.
WITH RECURSIVE fallen (n) AS (
    SELECT edges.child
    FROM json_each(:batch) AS redriven
    CROSS JOIN edges ON edges.parent = redriven.value
    CROSS JOIN ends ON ends.n = edges.child
    WHERE ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet')
    UNION
    SELECT edges.child
    FROM fallen
    CROSS JOIN edges ON edges.parent = fallen.n
    CROSS JOIN ends ON ends.n = edges.child
    WHERE ends.state = 'cancelled' AND ends.reason IN ('upstream_failed', 'trigger_unmet')
)
SELECT json_group_array(json_array(ends.n, ends.lane, ends.state))
FROM fallen
CROSS JOIN ends ON ends.n = fallen.n
