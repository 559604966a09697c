-- The ends of tasks that run again become lines of their history.
INSERT INTO perdure_events (organization, n, at_us, generation, type, actor, initiator, data)
SELECT
    ends.organization, ends.n, ends.finished_us, ends.generation, ends.state, ends.actor, tasks.initiator,
    json_build_object(
        'reason', ends.reason, 'summary', ends.summary, 'error', ends.error::json, 'queued_us', ends.queued_us
    )::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS redriven (value, place)
JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[redriven.value::bigint])
JOIN perdure_tasks AS tasks ON tasks.n = ANY (ARRAY[ends.n])
ORDER BY redriven.place
