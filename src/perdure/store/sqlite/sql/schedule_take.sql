-- A schedule to be moved, if it stands as it was seen: what waits.
SELECT waiting_us
FROM perdure_schedules AS schedules
WHERE organization = :organization AND name = :name AND version = :version AND next_us IS :seen
AND paused = :paused AND (paused = 1 OR look_us <= :now)
