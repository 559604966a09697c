-- Live attempts whose time is over, or whose worker is revoked: hold, guard and retry policy. What a worker held before lies
-- dead in the index below the first fence that it may hold. `strays`: those of workers without a row too.
WITH doubtful AS (
    SELECT held.organization, held.id, held.attempt_id, held.guard, held.retry
    FROM (
        SELECT
            live.organization, tasks.id, live.attempt_id, tasks.retry,
            CASE
                WHEN live.state = 'cancelling' AND live.cancel_ends_us <= %(now)s::bigint THEN 'cancel_over'
                WHEN live.deadline_us <= %(now)s::bigint THEN 'deadline_over'
                WHEN live.lease_ends_us <= %(now)s::bigint AND (
                    live.state = 'cancelling'
                    OR (
                        SELECT
                            meta.value::bigint <= %(now)s::bigint
                            OR meta.value::bigint > %(now)s::bigint + %(suspension_max)s::bigint
                        FROM perdure_meta AS meta
                        WHERE meta.key = 'losses_suspended_until_us'
                    )
                ) THEN 'lease_over'
                WHEN
                    live.state = 'running'
                    AND live.started_us + tasks.timeout_us + %(timeout_grace)s::bigint <= %(now)s::bigint
                    THEN 'timeout_over'
                WHEN live.ordered = 'revoke' THEN 'worker_revoked'
            END AS guard
        FROM (
            SELECT live.*, workers.ordered
            FROM perdure_workers AS workers
            CROSS JOIN LATERAL (
                SELECT * FROM perdure_live AS live
                WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.fence >= workers.held_from
            ) AS live
            UNION ALL
            SELECT live.*, NULL
            FROM perdure_live AS live
            WHERE %(strays)s::boolean AND live.attempt_id IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker)
        ) AS live
        JOIN perdure_tasks AS tasks ON tasks.n = live.n
    ) AS held
    WHERE held.guard IS NOT NULL
    LIMIT %(count)s::bigint
)
SELECT coalesce(jsonb_agg(jsonb_build_array(organization, id, attempt_id, guard, retry)), '[]')::text
FROM doubtful
