-- The first rows of a table.
SELECT {columns} FROM {table} ORDER BY {key} LIMIT {limit}
