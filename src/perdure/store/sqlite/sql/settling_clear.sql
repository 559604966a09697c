-- Empty the working table.
DELETE FROM settling
