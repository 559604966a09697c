-- The version of SQLite behind a connection.
SELECT sqlite_version()
