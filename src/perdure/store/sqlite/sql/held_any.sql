-- Whether any attempt is live.
SELECT EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_held WHERE attempt_id IS NOT NULL)
