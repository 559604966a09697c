-- The first place of each lane that lies below its mark, where there is one: what committed late, or came back.
SELECT coalesce(jsonb_agg(jsonb_build_array(stretch.value -> 0, head.seq)), '[]')::text
FROM jsonb_array_elements(%(stretches)s::jsonb) AS stretch (value)
CROSS JOIN LATERAL (
    SELECT live.seq
    FROM perdure_live AS live
    WHERE live.state = 'queued' AND live.lane = (stretch.value ->> 0)::bigint
    AND live.seq >= (stretch.value ->> 1)::bigint AND live.seq < (stretch.value ->> 2)::bigint
    ORDER BY live.seq
    LIMIT 1
) AS head
