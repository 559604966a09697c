-- Remove a working table from a caller's connection; the name of each stands in the place of this one.
DROP TABLE temp.settling
