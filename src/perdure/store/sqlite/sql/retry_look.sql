-- The tasks of a job that failed, and, where a failure `stopped` the job, those that were cancelled by that; with a parent
-- that was removed since they could never run as they were meant to. Number, state, redacted, lane, job, generation,
-- initiator, organization, id.
SELECT json_group_array(json_array(
    ends.n, ends.state, tasks.redacted_us IS NOT NULL, ends.lane, ends.job, ends.generation, tasks.initiator,
    ends.organization, tasks.id
) ORDER BY ends.n)
FROM perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job
CROSS JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE tasks.job = :job
AND (
    ends.state IN ('failed', 'dead_lettered', 'expired')
    OR (
        :stopped AND ends.state = 'cancelled' AND ends.reason = 'upstream_failed'
        AND (SELECT count(*) FROM perdure_edges AS above WHERE above.child = ends.n) = tasks.parents
    )
)
