-- Remove workers that nobody has seen for long and that hold nothing.
DELETE FROM workers
WHERE seen_us < :before
AND NOT EXISTS (SELECT 1 FROM live INDEXED BY live_held WHERE live.worker = workers.id AND attempt_id IS NOT NULL)
