-- A cluster has no one process that answers and no one start: nothing is kept in a session, and no start is noted.
SELECT 0::bigint, 0::bigint
