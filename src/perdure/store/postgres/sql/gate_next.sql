-- Stage the tasks whose turn it is, locked: the first ones at each gate of a batch of [gate, how many].
-- stages: joining
WITH next AS MATERIALIZED (
    SELECT asked.place, waiting.n, waiting.lane, waiting.state, waiting.turn
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
    CROSS JOIN LATERAL (
        SELECT live.n, live.lane, live.state, live.turn
        FROM perdure_live AS live
        WHERE live.gate = (asked.value ->> 0)::bigint
        ORDER BY live.turn
        LIMIT (asked.value ->> 1)::bigint
        FOR NO KEY UPDATE OF live
    ) AS waiting
),
joining AS (
    SELECT
        row_number() OVER (ORDER BY next.place, next.turn) + jsonb_array_length(%(joining)s::jsonb) AS position,
        next.n, next.lane, next.state AS from_state
    FROM next
)
SELECT coalesce(jsonb_agg(to_jsonb(joining) ORDER BY joining.position), '[]')::text FROM joining
