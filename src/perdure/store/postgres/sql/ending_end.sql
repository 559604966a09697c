-- Write the ends of waiting tasks. Their rows are locked.
INSERT INTO perdure_ends (
    n, organization, lane, job, state, reason, actor, finished_us, generation, failures, losses, fence,
    due_us, expires_us, deadline_us, error, cancel_us, cancel_actor, cancel_reason, cancel_text, cancel_note,
    queued_us
)
SELECT
    live.n, live.organization, live.lane, live.job, ending.state, ending.reason, ending.actor, %(now)s::bigint,
    live.generation, live.failures, live.losses, live.fence, live.due_us, live.expires_us, live.deadline_us,
    coalesce(ending.error, live.last_error),
    CASE WHEN ending.state = 'cancelled' THEN %(now)s::bigint END,
    CASE WHEN ending.state = 'cancelled' THEN ending.actor END,
    CASE WHEN ending.state = 'cancelled' THEN ending.reason END,
    ending.cancel_text, ending.cancel_note,
    live.queued_us
FROM jsonb_to_recordset(%(ending)s::jsonb) AS ending (
    n bigint, state text, reason text, actor text, error text, cancel_text text, cancel_note text
)
JOIN perdure_live AS live ON live.n = ANY (ARRAY[ending.n])
WHERE live.state IN ('pending', 'queued', 'retrying')
