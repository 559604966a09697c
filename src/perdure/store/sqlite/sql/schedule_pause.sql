-- Let nothing come of a schedule from now on; no row when there is none. Who paused it first is kept.
UPDATE perdure_schedules AS schedules
SET paused_by = CASE WHEN paused THEN paused_by ELSE :actor END,
    paused_us = CASE WHEN paused THEN paused_us ELSE :now END,
    paused = 1,
    look_us = NULL
WHERE organization = :organization AND name = :name
RETURNING 1
