-- The instant that waited makes what it was to make.
UPDATE perdure_fires AS fires
SET outcome = 'fired', task_id = :task, job_id = :job, at_us = :now, open = 1
WHERE organization = :organization AND schedule = :schedule AND instant_us = :instant AND outcome = 'waiting'
