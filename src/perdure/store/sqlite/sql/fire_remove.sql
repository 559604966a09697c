-- Forget fires of a schedule by their instants: they made nothing after all.
DELETE FROM perdure_fires AS fires
WHERE organization = :organization AND schedule = :schedule
AND instant_us IN (SELECT value FROM json_each(:batch))
