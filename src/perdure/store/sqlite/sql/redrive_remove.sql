-- The ends of tasks that run again are gone.
DELETE FROM ends WHERE n IN (SELECT value FROM json_each(:batch))
