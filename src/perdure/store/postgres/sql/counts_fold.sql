-- Add up some of what transactions appended into the counts: one at a time (the row in meta is its lock), others pass on.
-- Answers the number of the first change taken, and how many there were.
WITH turn AS MATERIALIZED (
    SELECT key FROM perdure_meta AS meta
    WHERE key = 'counts_fold'
    AND EXISTS (SELECT 1 FROM perdure_count_changes AS changes WHERE changes.c >= %(first)s::bigint)
    FOR UPDATE OF meta SKIP LOCKED
),
taken AS (
    DELETE FROM perdure_count_changes AS changes
    USING (
        SELECT changes.c
        FROM turn
        CROSS JOIN LATERAL (
            SELECT changes.c
            FROM perdure_count_changes AS changes
            WHERE changes.c >= %(first)s::bigint
            ORDER BY changes.c
            LIMIT %(count)s::bigint
        ) AS changes
    ) AS oldest
    WHERE changes.c = ANY (ARRAY[oldest.c])
    RETURNING changes.c, changes.lane, changes.state, changes.change
),
folded AS (
    INSERT INTO perdure_counts AS counts (lane, state, count)
    SELECT lane, state, sum(change)::bigint FROM taken GROUP BY lane, state ORDER BY lane, state
    ON CONFLICT (lane, state) DO UPDATE SET count = counts.count + excluded.count
)
SELECT min(c), count(*) FROM taken
