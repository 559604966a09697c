-- Remove workers that nobody has seen for long and that hold nothing.
DELETE FROM perdure_workers AS workers
WHERE seen_us < :before
AND NOT EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_held WHERE live.worker = workers.id AND attempt_id IS NOT NULL)
