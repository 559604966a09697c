-- The number of the caller's transaction, which has written.
SELECT pg_current_xact_id()::text::bigint
