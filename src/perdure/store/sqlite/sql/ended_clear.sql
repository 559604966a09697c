-- Empty the working table.
DELETE FROM ended
