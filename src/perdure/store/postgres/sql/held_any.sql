-- Whether any attempt is live.
SELECT EXISTS (SELECT 1 FROM perdure_live AS live WHERE attempt_id IS NOT NULL)
