-- How a schedule stands while its document is replaced; nobody moves it until that is done.
SELECT version, next_us, waiting_us
FROM perdure_schedules AS schedules
WHERE organization = %(organization)s::text AND name = %(name)s::text
FOR UPDATE
