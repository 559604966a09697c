-- Store a row.
INSERT INTO {table} ({columns}) VALUES ({values})
