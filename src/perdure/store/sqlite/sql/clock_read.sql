-- The anchor of the store's time, as one JSON object.
SELECT json_group_object(key, value) FROM perdure_meta AS meta WHERE key IN ('boot_id', 'offset_us', 'last_us')
