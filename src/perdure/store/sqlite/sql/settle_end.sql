-- Write the ends of the tasks whose attempt ended them.
INSERT INTO perdure_ends (
    n, organization, lane, job, state, reason, actor, finished_us, generation, failures, losses, fence, attempt_id,
    due_us, expires_us, deadline_us, result, result_encoding, error, summary,
    cancel_us, cancel_actor, cancel_reason, cancel_text, cancel_note, cancel_delivered_us
)
SELECT
    live.n, live.organization, live.lane, live.job, settling.state, settling.reason, settling.actor, :now,
    live.generation,
    live.failures + (settling.charge IN ('attempt', 'loss_and_attempt')),
    live.losses + (settling.charge IN ('loss', 'loss_and_attempt')),
    live.fence, live.attempt_id, live.due_us, live.expires_us, live.deadline_us,
    settling.result, settling.result_encoding,
    CASE WHEN settling.state IN ('succeeded', 'partially_succeeded') THEN NULL ELSE coalesce(settling.error, live.last_error) END,
    settling.summary,
    live.cancel_us, live.cancel_actor, live.cancel_reason, live.cancel_text, live.cancel_note,
    coalesce(live.cancel_delivered_us, min(:now, max(live.cancel_us, :now - settling.told_us)))
FROM settling
CROSS JOIN perdure_live AS live ON live.n = settling.n
WHERE settling.ended
