-- The lanes that have ended tasks, by state: what their kind says about keeping them (seconds), how far results are gone.
SELECT json_group_array(json_array(
    counts.lane, counts.state, json(kind.document -> '$.retention'), kind.document ->> '$.result_retention',
    coalesce(mark.finished_us, 0), coalesce(mark.task, 0)
))
FROM perdure_counts AS counts
CROSS JOIN perdure_lanes AS lanes ON lanes.lane = counts.lane
LEFT JOIN perdure_definitions AS kind
    ON kind.organization = lanes.organization AND kind.type = 'kind' AND kind.name = lanes.kind
LEFT JOIN perdure_results_removed AS mark ON mark.lane = counts.lane AND mark.state = counts.state
WHERE counts.count > 0
AND counts.state IN ('succeeded', 'partially_succeeded', 'failed', 'dead_lettered', 'cancelled', 'expired')
