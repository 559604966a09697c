-- All tasks of a job in the order of submission, with the names of their parents and the times of their last attempt.
-- Each task's rows are looked up by its number, however many tasks the job is thought to have: LIMIT keeps it so.
SELECT coalesce(json_agg(json_build_object(
    'id', tasks.id,
    'name', tasks.name,
    'kind', lanes.kind,
    'state', coalesce(live.state, ends.state),
    'reason', ends.reason,
    'parents', coalesce((
        SELECT json_agg(parents.name ORDER BY parents.n)
        FROM perdure_edges AS edges
        CROSS JOIN LATERAL (
            SELECT parent.n, parent.name FROM perdure_tasks AS parent WHERE parent.n = edges.parent LIMIT 1
        ) AS parents
        WHERE edges.child = tasks.n
    ), '[]'),
    'queued_us', coalesce(live.queued_us, attempts.queued_us, ends.queued_us),
    'leased_us', coalesce(live.leased_us, attempts.leased_us),
    'started_us', coalesce(live.started_us, attempts.started_us),
    'finished_us', ends.finished_us
) ORDER BY tasks.n), '[]')::text
FROM perdure_tasks AS tasks
CROSS JOIN LATERAL (
    SELECT lanes.kind FROM perdure_lanes AS lanes WHERE lanes.lane = tasks.lane LIMIT 1
) AS lanes
LEFT JOIN LATERAL (
    SELECT live.state, live.queued_us, live.leased_us, live.started_us
    FROM perdure_live AS live
    WHERE live.n = tasks.n
    LIMIT 1
) AS live ON true
LEFT JOIN LATERAL (
    SELECT ends.state, ends.reason, ends.fence, ends.queued_us, ends.finished_us
    FROM perdure_ends AS ends
    WHERE ends.n = tasks.n
    LIMIT 1
) AS ends ON true
LEFT JOIN LATERAL (
    SELECT attempts.queued_us, attempts.leased_us, attempts.started_us
    FROM perdure_attempts AS attempts
    WHERE attempts.n = tasks.n AND attempts.fence = ends.fence
    LIMIT 1
) AS attempts ON true
WHERE tasks.job = (
    SELECT jobs.j FROM perdure_jobs AS jobs
    WHERE jobs.organization = %(organization)s::text AND jobs.j = %(j)s::bigint
)
