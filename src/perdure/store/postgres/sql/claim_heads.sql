-- The first places of stretches of lanes, which nobody is kept from: [[place of the stretch, seq], ...], in order.
-- Stretches are [lane, from, until, how many].
SELECT coalesce(jsonb_agg(jsonb_build_array(stretch.place - 1, head.seq)), '[]')::text
FROM jsonb_array_elements(%(stretches)s::jsonb) WITH ORDINALITY AS stretch (value, place)
CROSS JOIN LATERAL (
    SELECT live.seq
    FROM perdure_live AS live
    WHERE live.state = 'queued' AND live.lane = (stretch.value ->> 0)::bigint
    AND live.seq >= (stretch.value ->> 1)::bigint AND live.seq <= (stretch.value ->> 2)::bigint
    AND (live.expires_us IS NULL OR live.expires_us > %(now)s::bigint)
    AND (live.deadline_us IS NULL OR live.deadline_us > %(now)s::bigint)
    ORDER BY live.seq
    LIMIT (stretch.value ->> 3)::bigint
) AS head
