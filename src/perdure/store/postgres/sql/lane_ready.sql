-- Every lane with queued tasks and the place of its first one: a look at one entry for each lane there is.
SELECT coalesce(jsonb_agg(jsonb_build_array(lanes.lane, head.seq)), '[]')::text
FROM perdure_lanes AS lanes
CROSS JOIN LATERAL (
    SELECT live.seq
    FROM perdure_live AS live
    WHERE live.state = 'queued' AND live.lane = lanes.lane
    ORDER BY live.seq
    LIMIT 1
) AS head
