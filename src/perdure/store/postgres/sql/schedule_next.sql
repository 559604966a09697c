-- When the next schedule is to be looked at.
SELECT min(look_us)
FROM perdure_schedules AS schedules
WHERE look_us IS NOT NULL
