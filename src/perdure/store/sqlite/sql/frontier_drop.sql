-- The staged part of the frontier is being dealt with.
DELETE FROM frontier WHERE n IN (SELECT n FROM ended)
