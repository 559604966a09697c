-- Let nothing come of a schedule from now on; no row when there is none. Who paused it first is kept.
UPDATE perdure_schedules AS schedules
SET paused_by = CASE WHEN paused THEN paused_by ELSE %(actor)s::text END,
    paused_us = CASE WHEN paused THEN paused_us ELSE %(now)s::bigint END,
    paused = true,
    look_us = NULL
WHERE organization = %(organization)s::text AND name = %(name)s::text
RETURNING 1
