-- Whether any attempt is live: each has a worker, so that the first entry of the index by worker tells.
SELECT EXISTS (
    SELECT 1
    FROM perdure_live AS live INDEXED BY perdure_live_held
    WHERE attempt_id IS NOT NULL AND worker IS NOT NULL
)
