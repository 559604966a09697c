-- Whether this role may read where rows come from that are being copied: a row if so.
SELECT 1 WHERE has_table_privilege('perdure_meta', 'SELECT')
