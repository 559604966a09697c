-- Of the tasks of a batch, in its order: kind, queue, priority, options; all of them null where there is no such task.
SELECT json_group_array(json_array(lanes.kind, lanes.queue, lanes.priority, tasks.options) ORDER BY asked.key)
FROM json_each(:batch) AS asked
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = :organization AND tasks.id = asked.value
LEFT JOIN perdure_lanes AS lanes ON lanes.lane = tasks.lane
