-- Store rows.
COPY {table} ({columns}) FROM STDIN
