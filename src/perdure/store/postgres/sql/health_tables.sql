-- What the server counts of each of perdure's tables that this role finds by its name.
SELECT coalesce(json_agg(json_build_array(
    tables.relname,
    tables.n_live_tup,
    tables.n_dead_tup,
    pg_total_relation_size(tables.relid),
    (extract(epoch FROM greatest(tables.last_vacuum, tables.last_autovacuum)) * 1000000)::bigint,
    (extract(epoch FROM greatest(tables.last_analyze, tables.last_autoanalyze)) * 1000000)::bigint
) ORDER BY tables.relname), '[]')::text
FROM pg_stat_user_tables AS tables
WHERE tables.relname LIKE 'perdure\_%%' AND pg_table_is_visible(tables.relid)
