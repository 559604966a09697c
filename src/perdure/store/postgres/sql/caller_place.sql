-- Which server, which database and which tables a connection is on, and the server's time.
SELECT
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
    (SELECT databases.oid::bigint FROM pg_database AS databases WHERE databases.datname = current_database()),
    to_regclass('perdure_live')::oid::bigint,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
