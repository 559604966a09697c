-- Where the steps taken are kept.
CREATE TABLE IF NOT EXISTS perdure_migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_us INTEGER NOT NULL
) STRICT
