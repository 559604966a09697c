-- The staged part of the frontier is being dealt with.
DELETE FROM perdure_frontier AS frontier WHERE n IN (SELECT n FROM ended)
