-- What many workers are ordered: those of them that are known and have not left.
SELECT id, ordered FROM perdure_workers AS workers
WHERE id IN (SELECT value FROM json_each(:batch)) AND left_us IS NULL
