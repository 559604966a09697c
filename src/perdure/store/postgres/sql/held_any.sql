-- Whether any attempt is live, or may be in a moment.
SELECT EXISTS (SELECT 1 FROM perdure_live AS live WHERE attempt_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM perdure_live AS live WHERE state = 'queued')
