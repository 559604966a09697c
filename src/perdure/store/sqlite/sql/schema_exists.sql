-- Whether the steps taken are kept here at all: a row if so.
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'perdure_migrations'
