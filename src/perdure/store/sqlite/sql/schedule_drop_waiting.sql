-- Let nothing wait at a schedule any more.
UPDATE perdure_schedules AS schedules
SET waiting_us = NULL
WHERE organization = :organization AND name = :name
