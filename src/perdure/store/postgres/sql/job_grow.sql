-- Count tasks that were added into their job, whose row is locked already.
UPDATE perdure_jobs AS jobs
SET total = total + %(count)s::bigint, open = open + %(count)s::bigint
WHERE j = %(job)s::bigint AND open > 0
