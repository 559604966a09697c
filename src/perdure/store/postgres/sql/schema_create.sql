-- Where the steps taken are kept.
CREATE TABLE IF NOT EXISTS perdure_migrations (
    number bigint PRIMARY KEY,
    name text NOT NULL,
    applied_us bigint NOT NULL
)
