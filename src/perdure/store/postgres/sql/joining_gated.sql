-- Of the tasks that are to join now, those that have gates: number, lane, state, priority, the gate at which it waits, when
-- it was submitted, organization, id, its gates, and the gates at which it has a slot. Their rows are locked.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    live.n, live.lane, live.state, lanes.priority, live.gate, tasks.created_us, tasks.organization, tasks.id,
    tasks.options -> 'gates',
    (
        SELECT coalesce(jsonb_agg(slots.gate), '[]') FROM perdure_slots AS slots
        WHERE slots.n = live.n AND slots.free_us IS NULL
    )
) ORDER BY joining.position), '[]')::text
FROM jsonb_to_recordset(%(joining)s::jsonb) AS joining (n bigint, position bigint)
JOIN perdure_live AS live ON live.n = ANY (ARRAY[joining.n])
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[live.n])
JOIN perdure_lanes AS lanes ON lanes.lane = ANY (ARRAY[live.lane])
WHERE live.gated = 1 AND (live.due_us <= %(due)s::bigint OR live.gate IS NOT NULL)
