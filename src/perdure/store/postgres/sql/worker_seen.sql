-- Note that a worker is there.
UPDATE perdure_workers AS workers
SET seen_us = %(now)s::bigint, capacity = %(capacity)s::bigint
WHERE id = %(id)s::text AND left_us IS NULL
RETURNING ordered
