-- Change a breaker: it is open for :open_us, or closed where that is null. With :expected, only if its last change is that one.
INSERT INTO perdure_breakers AS breakers (
    organization, kind, since_us, until_us, tell_us, attempts, failures, trips, event, actor
)
SELECT
    :organization, :kind, :now, :now + :open_us, :now + :open_us, :attempts, :failures, :open_us IS NOT NULL, :event, :actor
WHERE true
ON CONFLICT (organization, kind) DO UPDATE
SET since_us = max(excluded.since_us, breakers.since_us + 1),
    until_us = excluded.until_us,
    tell_us = excluded.tell_us,
    attempts = excluded.attempts,
    failures = excluded.failures,
    trips = breakers.trips + excluded.trips,
    event = excluded.event,
    actor = excluded.actor
WHERE :expected IS NULL OR breakers.since_us = :expected
RETURNING until_us
