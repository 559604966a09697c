-- Since when the first tasks of stretches of lanes wait: [[lane, instant], ...]. A batch of [lane, from, until].
SELECT coalesce(jsonb_agg(jsonb_build_array(head.lane, head.queued_us)), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) AS stretch (value)
CROSS JOIN LATERAL (
    SELECT live.lane, live.queued_us
    FROM perdure_live AS live
    WHERE live.state = 'queued' AND live.lane = (stretch.value ->> 0)::bigint
    AND live.seq >= (stretch.value ->> 1)::bigint AND live.seq <= (stretch.value ->> 2)::bigint
    ORDER BY live.seq
    LIMIT 1
) AS head
