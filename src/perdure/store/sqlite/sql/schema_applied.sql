-- The steps that this database took.
SELECT number, name, applied_us FROM migrations ORDER BY number
