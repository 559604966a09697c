-- Write the ends of waiting tasks.
INSERT INTO perdure_ends (
    n, organization, lane, job, state, reason, actor, finished_us, generation, failures, losses, fence,
    due_us, expires_us, deadline_us, error, cancel_us, cancel_actor, cancel_reason, cancel_text, cancel_note,
    queued_us
)
SELECT
    live.n, live.organization, live.lane, live.job, ending.state, ending.reason, ending.actor, :now, live.generation,
    live.failures, live.losses, live.fence, live.due_us, live.expires_us, live.deadline_us,
    coalesce(ending.error, live.last_error),
    iif(ending.state = 'cancelled', :now, NULL),
    iif(ending.state = 'cancelled', ending.actor, NULL),
    iif(ending.state = 'cancelled', ending.reason, NULL),
    ending.cancel_text, ending.cancel_note,
    live.queued_us
FROM ending
CROSS JOIN perdure_live AS live ON live.n = ending.n
WHERE live.state IN ('pending', 'queued', 'retrying')
