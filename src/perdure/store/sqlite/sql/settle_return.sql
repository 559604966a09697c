-- Put tasks that go on back among those that wait.
UPDATE perdure_live AS live
SET state = settling.state,
    seq = CASE WHEN settling.state = 'queued' THEN :front + settling.place END,
    queued_us = CASE WHEN settling.state = 'queued' THEN :now END,
    due_us = :now + settling.delay_us,
    expires_us = CASE WHEN settling.clears_ttl THEN NULL ELSE live.expires_us END,
    failures = live.failures + (settling.charge IN ('attempt', 'loss_and_attempt')),
    losses = live.losses + (settling.charge IN ('loss', 'loss_and_attempt')),
    snoozes = live.snoozes + (settling.charge = 'snooze'),
    hand_backs = live.hand_backs + (settling.charge = 'hand_back'),
    last_error = coalesce(settling.error, live.last_error),
    attempt_id = NULL,
    token = NULL,
    worker = NULL,
    leased_us = NULL,
    started_us = NULL,
    lease_ends_us = NULL
FROM (
    SELECT *, row_number() OVER (PARTITION BY state ORDER BY n) AS place
    FROM settling
    WHERE NOT ended
) AS settling
WHERE live.n = settling.n AND live.state IN ('leased', 'running')
