-- Stage tasks that are due, those that have waited longest first. What another run has is left to it.
-- stages: joining
WITH due AS (
    SELECT live.n, live.lane, live.state, live.due_us
    FROM perdure_live AS live
    WHERE live.state IN ('pending', 'retrying') AND live.waits = 0 AND live.gate IS NULL
    AND live.due_us >= %(since)s::bigint AND live.due_us <= %(now)s::bigint
    ORDER BY live.due_us
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
),
joining AS (
    SELECT row_number() OVER (ORDER BY due.due_us, due.n) AS position, due.n, due.lane, due.state AS from_state
    FROM due
)
SELECT coalesce(jsonb_agg(to_jsonb(joining) ORDER BY joining.position), '[]')::text
FROM joining
