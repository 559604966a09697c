-- The ends of tasks that run again are gone.
DELETE FROM perdure_ends AS ends WHERE n IN (SELECT value FROM json_each(:batch))
