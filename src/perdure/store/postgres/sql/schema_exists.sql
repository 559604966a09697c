-- Whether the steps taken are kept here at all: a row if so.
SELECT 1 WHERE to_regclass('perdure_migrations') IS NOT NULL
