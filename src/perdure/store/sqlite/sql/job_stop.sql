-- Note that a job shall stop because somebody asked.
UPDATE perdure_jobs AS jobs
SET stopping = 'requested', cancel_us = :now, cancel_actor = :actor, cancel_text = :text
WHERE j = :job AND open > 0 AND (stopping IS NULL OR stopping = 'failure')
