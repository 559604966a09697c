-- Remove how a schedule stood.
DELETE FROM perdure_schedules AS schedules
WHERE organization = :organization AND name = :name
