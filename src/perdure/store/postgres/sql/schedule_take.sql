-- A schedule to be moved, if it stands as it was seen and nobody else moves it: what waits.
SELECT waiting_us
FROM perdure_schedules AS schedules
WHERE organization = %(organization)s::text AND name = %(name)s::text AND version = %(version)s::bigint
AND next_us IS NOT DISTINCT FROM %(seen)s::bigint
AND paused = %(paused)s::boolean AND (paused OR look_us <= %(now)s::bigint)
FOR UPDATE SKIP LOCKED
