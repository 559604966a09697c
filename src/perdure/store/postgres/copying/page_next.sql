-- The rows of a table after a key.
SELECT {columns} FROM {table} WHERE ({key}) > ({after}) ORDER BY {key} LIMIT {limit}
