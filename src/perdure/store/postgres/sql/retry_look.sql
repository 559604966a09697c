-- The tasks of a job that failed, and, where a failure `stopped` the job, those that were cancelled by that; with a parent
-- that was removed since they could never run as they were meant to. Number, state, redacted, lane, job, generation,
-- initiator, organization, id. Locks them in ascending order.
WITH locked AS MATERIALIZED (
    SELECT
        ends.n, ends.state, tasks.redacted_us, ends.lane, ends.job, ends.generation, tasks.initiator, ends.organization,
        tasks.id
    FROM perdure_tasks AS tasks
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[tasks.n])
    WHERE tasks.job = %(job)s::bigint
    AND (
        ends.state IN ('failed', 'dead_lettered', 'expired')
        OR (
            %(stopped)s::boolean AND ends.state = 'cancelled' AND ends.reason = 'upstream_failed'
            AND (SELECT count(*) FROM perdure_edges AS above WHERE above.child = ends.n) = tasks.parents
        )
    )
    ORDER BY ends.n
    FOR UPDATE OF ends
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    n, state, redacted_us IS NOT NULL, lane, job, generation, initiator, organization, id
) ORDER BY n), '[]')::text
FROM locked
