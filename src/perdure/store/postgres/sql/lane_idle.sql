-- Note of lanes that have nothing in them since when.
WITH idle AS MATERIALIZED (
    SELECT lanes.lane
    FROM perdure_lanes AS lanes
    WHERE lanes.idle_since_us IS NULL
    AND NOT EXISTS (
        SELECT 1
        FROM (
            SELECT kept.state, kept.count FROM perdure_counts AS kept WHERE kept.lane = lanes.lane
            UNION ALL
            SELECT changes.state, changes.change FROM perdure_count_changes AS changes WHERE changes.lane = lanes.lane
        ) AS counts
        GROUP BY counts.state
        HAVING sum(counts.count) > 0
    )
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
UPDATE perdure_lanes AS lanes
SET idle_since_us = %(now)s::bigint
FROM idle
WHERE lanes.lane = idle.lane AND lanes.idle_since_us IS NULL
