-- Let nothing wait at a schedule any more.
UPDATE perdure_schedules AS schedules
SET waiting_us = NULL
WHERE organization = %(organization)s::text AND name = %(name)s::text
