-- Mark dead letters as done with.
UPDATE perdure_ends AS ends
SET discarded_us = :now
WHERE n IN (SELECT value FROM json_each(:batch)) AND state = 'dead_lettered' AND discarded_us IS NULL
