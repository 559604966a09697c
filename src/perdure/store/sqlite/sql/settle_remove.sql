-- Remove the live rows of the tasks whose attempt ended them.
DELETE FROM live WHERE n IN (SELECT n FROM settling WHERE ended)
