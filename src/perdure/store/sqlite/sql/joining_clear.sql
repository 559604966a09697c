-- Empty the working table.
DELETE FROM joining
