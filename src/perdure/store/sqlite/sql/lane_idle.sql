-- Note of lanes that have nothing in them since when.
UPDATE perdure_lanes AS lanes
SET idle_since_us = :now
WHERE lane IN (
    SELECT lane FROM perdure_lanes AS lanes
    WHERE idle_since_us IS NULL
    AND NOT EXISTS (SELECT 1 FROM perdure_counts AS counts WHERE counts.lane = lanes.lane AND counts.count > 0)
    LIMIT :count
)
