-- Note that a worker is gone for good.
UPDATE perdure_workers AS workers
SET left_us = %(now)s::bigint
WHERE id = %(id)s::text AND left_us IS NULL
