-- When the next schedule is to be looked at, after those that are to be looked at now.
SELECT min(look_us)
FROM perdure_schedules AS schedules
WHERE look_us > :now
