-- The ends of tasks that run again become lines of their history.
INSERT INTO perdure_events (organization, n, at_us, generation, type, actor, initiator, data)
SELECT
    ends.organization, ends.n, ends.finished_us, ends.generation, ends.state, ends.actor, tasks.initiator,
    json_object('reason', ends.reason, 'summary', ends.summary, 'error', json(ends.error), 'queued_us', ends.queued_us)
FROM json_each(:batch) AS redriven
CROSS JOIN perdure_ends AS ends ON ends.n = redriven.value
CROSS JOIN perdure_tasks AS tasks ON tasks.n = ends.n
