-- The steps that this database took.
SELECT number, name, applied_us FROM perdure_migrations AS migrations ORDER BY number
