-- Remove the live rows of the tasks whose attempt ended them.
DELETE FROM perdure_live AS live WHERE n IN (SELECT n FROM settling WHERE ended)
