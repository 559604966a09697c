-- Which database and which tables a connection is on, and the server's time.
SELECT
    0::bigint,
    (SELECT databases.oid::bigint FROM pg_database AS databases WHERE databases.datname = current_database()),
    to_regclass('perdure_live')::oid::bigint,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
