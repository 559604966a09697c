-- The numbers of lanes, in the order of the batch.
SELECT json_group_array(lane ORDER BY key)
FROM json_each(:batch) AS asked
CROSS JOIN perdure_lanes AS lanes
    ON lanes.organization = asked.value ->> 0
    AND lanes.queue = asked.value ->> 1
    AND lanes.kind = asked.value ->> 2
    AND lanes.capabilities = asked.value ->> 3
    AND lanes.priority = asked.value ->> 4
