-- Note how far the results of a lane have been removed; never back to where another run was already.
INSERT INTO perdure_results_removed AS mark (lane, state, finished_us, task)
VALUES (%(lane)s::bigint, %(state)s::text, %(finished_us)s::bigint, %(task)s::bigint)
ON CONFLICT (lane, state) DO UPDATE SET finished_us = excluded.finished_us, task = excluded.task
WHERE (excluded.finished_us, excluded.task) > (mark.finished_us, mark.task)
