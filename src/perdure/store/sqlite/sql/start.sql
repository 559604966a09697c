-- The handler has begun.
UPDATE live
SET state = 'running', started_us = :now
WHERE n IN (SELECT value FROM json_each(:batch)) AND state = 'leased'
