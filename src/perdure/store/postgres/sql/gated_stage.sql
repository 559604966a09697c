-- Stage new tasks that have gates and wait for nothing else.
-- stages: joining
WITH joining AS (
    SELECT row_number() OVER (ORDER BY live.n) AS position, live.n, live.lane, live.state AS from_state
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS fresh (value)
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[fresh.value::bigint])
    WHERE coalesce(live.state, '') = 'pending' AND live.waits = 0 AND live.gate IS NULL AND live.due_us <= %(now)s::bigint
)
SELECT coalesce(jsonb_agg(to_jsonb(joining) ORDER BY joining.position), '[]')::text FROM joining
