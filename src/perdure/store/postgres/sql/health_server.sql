-- How the server is, its settings included that acknowledged work depends on.
SELECT json_build_object(
    'server_version', current_setting('server_version'),
    'pooled', pg_backend_pid() <> %(backend)s::bigint,
    'fsync', current_setting('fsync') = 'on',
    'full_page_writes', current_setting('full_page_writes') = 'on',
    -- What this transaction set for itself is left out.
    'synchronous_commit', (SELECT reset_val FROM pg_settings AS settings WHERE settings.name = 'synchronous_commit'),
    'autovacuum', current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on',
    'database_bytes', pg_database_size(databases.oid),
    'transaction_age', age(databases.datfrozenxid),
    'freeze_age', current_setting('autovacuum_freeze_max_age')::bigint,
    'connections', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    'own_connections', (
        SELECT count(*) FROM pg_stat_activity AS sessions
        WHERE sessions.datid = databases.oid AND sessions.application_name LIKE 'perdure%%'
    ),
    'connections_max', current_setting('max_connections')::bigint
        - current_setting('superuser_reserved_connections')::bigint
        - coalesce(current_setting('reserved_connections', true)::bigint, 0),
    'standbys', (SELECT count(*) FROM pg_stat_replication),
    'slots', coalesce((
        SELECT json_agg(json_build_array(
            slots.slot_name, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), slots.restart_lsn)::bigint, 0)
        ) ORDER BY slots.slot_name)
        FROM pg_replication_slots AS slots
        WHERE NOT slots.active
    ), '[]')
)::text
FROM pg_database AS databases
WHERE databases.datname = current_database()
