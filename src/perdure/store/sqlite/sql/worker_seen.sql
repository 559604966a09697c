-- Note that a worker is there.
UPDATE perdure_workers AS workers
SET seen_us = :now, capacity = :capacity
WHERE id = :id AND left_us IS NULL
RETURNING ordered
