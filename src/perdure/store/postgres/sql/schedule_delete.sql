-- Remove how a schedule stood.
DELETE FROM perdure_schedules AS schedules
WHERE organization = %(organization)s::text AND name = %(name)s::text
