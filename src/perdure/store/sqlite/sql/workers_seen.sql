-- Note that many workers are there; return what those are ordered that are known and have not left.
UPDATE perdure_workers AS workers SET seen_us = :now
WHERE id IN (SELECT value FROM json_each(:batch)) AND left_us IS NULL
RETURNING id, ordered
