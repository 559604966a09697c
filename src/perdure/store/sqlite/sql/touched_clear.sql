-- Empty the working table.
DELETE FROM touched
