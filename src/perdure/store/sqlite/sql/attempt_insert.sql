-- Keep the attempts that end.
INSERT INTO perdure_attempts (
    n, fence, id, generation, number, worker, build, state, reason, task_state, actor,
    queued_us, leased_us, started_us, ended_us, due_us, error, digest
)
SELECT
    live.n, live.fence, live.attempt_id, live.generation, live.failures + 1, live.worker, workers.build,
    settling.attempt_state, settling.reason, settling.state, settling.actor,
    live.queued_us, live.leased_us,
    coalesce(live.started_us, min(:now, max(live.leased_us, :now - settling.ran_us))), :now,
    CASE WHEN settling.state IN ('retrying', 'pending') THEN :now + settling.delay_us END,
    settling.error, settling.digest
FROM settling
CROSS JOIN perdure_live AS live ON live.n = settling.n
LEFT JOIN perdure_workers AS workers ON workers.id = live.worker
