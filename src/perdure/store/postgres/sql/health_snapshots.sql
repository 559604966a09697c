-- The oldest snapshot of the server, which keeps dead rows from being removed: seconds and who has it; and how many
-- sessions this role may not look into.
SELECT json_build_object(
    'oldest', (
        SELECT json_build_array(round(extract(epoch FROM clock_timestamp() - held.since)::numeric, 1), held.who)
        FROM (
            SELECT
                sessions.xact_start AS since,
                format('process %%s, %%s, %%s', sessions.pid, sessions.usename, sessions.state) AS who
            FROM pg_stat_activity AS sessions
            WHERE sessions.backend_xmin IS NOT NULL AND sessions.xact_start IS NOT NULL
            AND sessions.pid <> pg_backend_pid() AND sessions.backend_type <> 'autovacuum worker'
            UNION ALL
            SELECT prepared.prepared, format('prepared transaction %%s', prepared.gid)
            FROM pg_prepared_xacts AS prepared
        ) AS held
        ORDER BY held.since
        LIMIT 1
    ),
    'hidden', (
        SELECT count(*) FROM pg_stat_activity AS sessions
        WHERE sessions.query = '<insufficient privilege>'
    )
)::text
