-- Whether any attempt is live, or may be in a moment: each has a worker, so that the first entries of two indexes tell.
SELECT EXISTS (
    SELECT 1
    FROM perdure_live AS live INDEXED BY perdure_live_held
    WHERE attempt_id IS NOT NULL AND worker IS NOT NULL
) OR EXISTS (
    SELECT 1
    FROM perdure_live AS live INDEXED BY perdure_live_ready
    WHERE state = 'queued' AND lane > 0
)
