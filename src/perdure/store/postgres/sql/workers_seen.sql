-- Note that many workers are there; return what those are ordered that are known and have not left.
-- Locks workers by id.
WITH here AS (
    SELECT workers.id FROM perdure_workers AS workers
    WHERE workers.id IN (SELECT asked.value FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value))
    AND workers.left_us IS NULL
    ORDER BY workers.id
    FOR NO KEY UPDATE
)
UPDATE perdure_workers AS workers SET seen_us = %(now)s::bigint
FROM here
WHERE workers.id = here.id
RETURNING workers.id, workers.ordered
