-- What many workers are ordered: those of them that are known and have not left.
SELECT workers.id, workers.ordered FROM perdure_workers AS workers
WHERE workers.id IN (SELECT asked.value FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value))
AND workers.left_us IS NULL
