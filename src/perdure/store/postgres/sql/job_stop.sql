-- Note that a job shall stop because somebody asked.
UPDATE perdure_jobs AS jobs
SET stopping = 'requested',
    cancel_us = %(now)s::bigint,
    cancel_actor = %(actor)s::text,
    cancel_text = %(text)s::text
WHERE j = %(job)s::bigint AND open > 0 AND (stopping IS NULL OR stopping = 'failure')
