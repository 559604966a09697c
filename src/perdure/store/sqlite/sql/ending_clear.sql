-- Empty the working table.
DELETE FROM ending
