-- Live attempts whose time is over, or whose worker is revoked: hold, guard and retry policy.
SELECT json_group_array(json_array(organization, id, attempt_id, guard, retry))
FROM (
    SELECT *
    FROM (
        SELECT
            live.organization, tasks.id, live.attempt_id, tasks.retry,
            CASE
                WHEN live.state = 'cancelling' AND live.cancel_ends_us <= :now THEN 'cancel_over'
                WHEN live.deadline_us <= :now THEN 'deadline_over'
                WHEN live.lease_ends_us <= :now AND (
                    live.state = 'cancelling'
                    OR (
                        SELECT value <= :now OR value > :now + :suspension_max
                        FROM perdure_meta AS meta WHERE key = 'losses_suspended_until_us'
                    )
                ) THEN 'lease_over'
                WHEN live.state = 'running' AND live.started_us + tasks.timeout_us + :timeout_grace <= :now
                    THEN 'timeout_over'
                WHEN workers.ordered = 'revoke' THEN 'worker_revoked'
            END AS guard
        FROM perdure_live AS live INDEXED BY perdure_live_held
        CROSS JOIN perdure_tasks AS tasks ON tasks.n = live.n
        LEFT JOIN perdure_workers AS workers ON workers.id = live.worker
        WHERE live.attempt_id IS NOT NULL
    )
    WHERE guard IS NOT NULL
    LIMIT :count
)
