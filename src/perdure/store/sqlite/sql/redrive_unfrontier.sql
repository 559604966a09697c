-- What follows the end of a task that runs again is no longer due.
DELETE FROM perdure_frontier AS frontier WHERE n IN (SELECT value FROM json_each(:batch))
