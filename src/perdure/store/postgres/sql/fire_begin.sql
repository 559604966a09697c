-- The instant that waited makes what it was to make.
UPDATE perdure_fires AS fires
SET outcome = 'fired', task_id = %(task)s::text, job_id = %(job)s::text, at_us = %(now)s::bigint, open = true
WHERE organization = %(organization)s::text AND schedule = %(schedule)s::text AND instant_us = %(instant)s::bigint
AND outcome = 'waiting'
