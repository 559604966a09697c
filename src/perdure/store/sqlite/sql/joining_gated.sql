-- Of the tasks that are to join now, those that have gates: number, lane, state, priority, the gate at which it waits, when
-- it was submitted, organization, id, its gates, and the gates at which it has a slot.
SELECT json_group_array(json_array(
    live.n, live.lane, live.state, lanes.priority, live.gate, tasks.created_us, tasks.organization, tasks.id,
    json(tasks.options -> '$.gates'),
    json((SELECT json_group_array(slots.gate) FROM perdure_slots AS slots WHERE slots.n = live.n AND slots.free_us IS NULL))
) ORDER BY joining.position)
FROM joining
CROSS JOIN perdure_live AS live ON live.n = joining.n
CROSS JOIN perdure_tasks AS tasks ON tasks.n = live.n
CROSS JOIN perdure_lanes AS lanes ON lanes.lane = live.lane
WHERE live.gated = 1 AND (live.due_us <= :due OR live.gate IS NOT NULL)
