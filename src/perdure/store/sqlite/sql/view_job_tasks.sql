-- All tasks of a job in the order of submission, with the names of their parents and the times of their last attempt.
SELECT json_group_array(json_object(
    'id', tasks.id,
    'name', tasks.name,
    'kind', lanes.kind,
    'state', coalesce(live.state, ends.state),
    'reason', ends.reason,
    'parents', json((
        SELECT json_group_array(parent.name ORDER BY parent.n)
        FROM edges INDEXED BY edges_by_child
        CROSS JOIN tasks AS parent ON parent.n = edges.parent
        WHERE edges.child = tasks.n
    )),
    'queued_us', coalesce(live.queued_us, attempts.queued_us, ends.queued_us),
    'leased_us', coalesce(live.leased_us, attempts.leased_us),
    'started_us', coalesce(live.started_us, attempts.started_us),
    'finished_us', ends.finished_us
) ORDER BY tasks.n)
FROM jobs
CROSS JOIN tasks INDEXED BY tasks_by_job ON tasks.job = jobs.j
CROSS JOIN lanes ON lanes.lane = tasks.lane
LEFT JOIN live ON live.n = tasks.n
LEFT JOIN ends ON ends.n = tasks.n
LEFT JOIN attempts ON attempts.n = ends.n AND attempts.fence = ends.fence
WHERE jobs.organization = :organization AND jobs.j = :j
