-- Every lane with queued tasks: [[lane], ...]. By the counters, because what was queued before lies dead in the index.
SELECT coalesce(jsonb_agg(jsonb_build_array(ready.lane)), '[]')::text
FROM (
    SELECT counts.lane
    FROM (
        SELECT kept.lane, kept.count FROM perdure_counts AS kept WHERE kept.state = 'queued'
        UNION ALL
        SELECT changes.lane, changes.change FROM perdure_count_changes AS changes WHERE changes.state = 'queued'
    ) AS counts
    GROUP BY counts.lane
    HAVING sum(counts.count) > 0
) AS ready
