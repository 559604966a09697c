-- Note how far the results of a lane have been removed.
INSERT INTO perdure_results_removed (lane, state, finished_us, task)
VALUES (:lane, :state, :finished_us, :task)
ON CONFLICT (lane, state) DO UPDATE SET finished_us = excluded.finished_us, task = excluded.task
