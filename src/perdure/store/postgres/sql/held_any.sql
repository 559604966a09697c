-- Whether any attempt is live, or may be in a moment. By the counters, because what has ended lies dead in the indexes.
SELECT EXISTS (
    SELECT 1
    FROM (
        SELECT kept.lane, kept.state, kept.count FROM perdure_counts AS kept
        UNION ALL
        SELECT changes.lane, changes.state, changes.change FROM perdure_count_changes AS changes
    ) AS counts
    WHERE counts.state IN ('queued', 'leased', 'running', 'cancelling')
    GROUP BY counts.lane, counts.state
    HAVING sum(counts.count) > 0
)
