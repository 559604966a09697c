-- How a schedule stands while its document is replaced.
SELECT version, next_us, waiting_us
FROM perdure_schedules AS schedules
WHERE organization = :organization AND name = :name
