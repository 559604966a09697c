-- Where the rows come from that are being copied to this store.
SELECT value FROM perdure_meta AS meta WHERE key = 'copy_origin'
