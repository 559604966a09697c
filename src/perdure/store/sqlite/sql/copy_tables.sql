-- The tables and their columns that hold something of their own.
SELECT tables.name, columns.name
FROM sqlite_schema AS tables
CROSS JOIN pragma_table_xinfo(tables.name) AS columns
WHERE tables.type = 'table' AND tables.name LIKE 'perdure\_%' ESCAPE '\' AND columns.hidden = 0
