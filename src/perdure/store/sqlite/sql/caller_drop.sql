-- Remove a working table from a caller's connection; its name stands in the place of `working`.
DROP TABLE temp.working
