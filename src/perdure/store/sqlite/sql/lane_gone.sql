-- Lanes that have been empty for long. The last one stays, so that no number is given twice.
SELECT json_group_array(lane)
FROM (
    SELECT lane FROM perdure_lanes AS lanes
    WHERE idle_since_us <= :before AND lane < (SELECT max(lane) FROM perdure_lanes)
    AND NOT EXISTS (SELECT 1 FROM perdure_counts AS counts WHERE counts.lane = lanes.lane AND counts.count > 0)
    LIMIT :count
)
