-- What the lanes of a batch of numbers stand for.
SELECT json_group_array(json_array(lane, organization, queue, kind, json(capabilities), priority))
FROM json_each(:batch) AS asked
CROSS JOIN perdure_lanes AS lanes ON lanes.lane = asked.value
