-- The start of the server that is noted.
SELECT value FROM perdure_meta WHERE key = 'server_start_us'
