"""The store in one SQLite file: embedded, durable, shared by many processes of one machine."""
