-- All tasks of a job in the order of submission, with the names of their parents and the times of their last attempt.
SELECT json_group_array(json_object(
    'id', tasks.id,
    'name', tasks.name,
    'kind', lanes.kind,
    'state', coalesce(live.state, ends.state),
    'reason', ends.reason,
    'parents', json((
        SELECT json_group_array(parent.name ORDER BY parent.n)
        FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child
        CROSS JOIN perdure_tasks AS parent ON parent.n = edges.parent
        WHERE edges.child = tasks.n
    )),
    'queued_us', coalesce(live.queued_us, attempts.queued_us, ends.queued_us),
    'leased_us', coalesce(live.leased_us, attempts.leased_us),
    'started_us', coalesce(live.started_us, attempts.started_us),
    'finished_us', ends.finished_us
) ORDER BY tasks.n)
FROM perdure_jobs AS jobs
CROSS JOIN perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job ON tasks.job = jobs.j
CROSS JOIN perdure_lanes AS lanes ON lanes.lane = tasks.lane
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
LEFT JOIN perdure_attempts AS attempts ON attempts.n = ends.n AND attempts.fence = ends.fence
WHERE jobs.organization = :organization AND jobs.j = :j
