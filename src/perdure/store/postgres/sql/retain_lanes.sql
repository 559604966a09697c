-- The lanes that have ended tasks, by state: what their kind says about keeping them (seconds), how far results are gone.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    counted.lane, counted.state, kind.document -> 'retention', kind.document -> 'result_retention',
    coalesce(mark.finished_us, 0), coalesce(mark.task, 0)
) ORDER BY counted.lane, counted.state), '[]')::text
FROM (
    SELECT counts.lane, counts.state, sum(counts.count) AS count
    FROM (
        SELECT kept.lane, kept.state, kept.count FROM perdure_counts AS kept
        UNION ALL
        SELECT changes.lane, changes.state, changes.change FROM perdure_count_changes AS changes
    ) AS counts
    WHERE counts.state IN ('succeeded', 'partially_succeeded', 'failed', 'dead_lettered', 'cancelled', 'expired')
    GROUP BY counts.lane, counts.state
) AS counted
JOIN perdure_lanes AS lanes ON lanes.lane = counted.lane
LEFT JOIN perdure_definitions AS kind
    ON kind.organization = lanes.organization AND kind.type = 'kind' AND kind.name = lanes.kind
LEFT JOIN perdure_results_removed AS mark ON mark.lane = counted.lane AND mark.state = counted.state
WHERE counted.count > 0
