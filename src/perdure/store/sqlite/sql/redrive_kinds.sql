-- Of the tasks of a batch, in its order, the kind and which results of others fill which fields of the payload; the kind is null where there is no such task.
SELECT json_group_array(json_array(lanes.kind, json(tasks.options -> '$.bindings')) ORDER BY asked.key)
FROM json_each(:batch) AS asked
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = :organization AND tasks.id = asked.value
LEFT JOIN perdure_lanes AS lanes ON lanes.lane = tasks.lane
