-- Every lane with queued tasks and the place of its first one: a loose scan that touches one entry a lane.
WITH RECURSIVE ready (lane) AS (
    SELECT min(lane) FROM perdure_live AS live INDEXED BY perdure_live_ready WHERE state = 'queued'
    UNION ALL
    SELECT (SELECT min(lane) FROM perdure_live AS live INDEXED BY perdure_live_ready WHERE state = 'queued' AND lane > ready.lane)
    FROM ready
    WHERE ready.lane IS NOT NULL
)
SELECT json_group_array(json_array(
    lane,
    (SELECT min(seq) FROM perdure_live AS live INDEXED BY perdure_live_ready WHERE state = 'queued' AND live.lane = ready.lane)
))
FROM ready
WHERE lane IS NOT NULL
