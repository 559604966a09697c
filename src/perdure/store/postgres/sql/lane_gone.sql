-- Lanes that have been empty for long, locked, so that nobody takes one up again until they are gone.
WITH gone AS MATERIALIZED (
    SELECT lanes.lane
    FROM perdure_lanes AS lanes
    WHERE lanes.idle_since_us <= %(before)s::bigint
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
SELECT coalesce(jsonb_agg(gone.lane), '[]')::text FROM gone
