-- Change a breaker: it is open for :open_us, or closed where that is null. With :expected, only if its last change is that one.
INSERT INTO perdure_breakers AS breakers (
    organization, kind, since_us, until_us, tell_us, attempts, failures, trips, event, actor
)
VALUES (
    %(organization)s::text, %(kind)s::text, %(now)s::bigint, %(now)s::bigint + %(open_us)s::bigint,
    %(now)s::bigint + %(open_us)s::bigint, %(attempts)s::bigint, %(failures)s::bigint,
    CASE WHEN %(open_us)s::bigint IS NULL THEN 0 ELSE 1 END, %(event)s::text, %(actor)s::text
)
ON CONFLICT (organization, kind) DO UPDATE
SET since_us = greatest(excluded.since_us, breakers.since_us + 1),
    until_us = excluded.until_us,
    tell_us = excluded.tell_us,
    attempts = excluded.attempts,
    failures = excluded.failures,
    trips = breakers.trips + excluded.trips,
    event = excluded.event,
    actor = excluded.actor
WHERE %(expected)s::bigint IS NULL OR breakers.since_us = %(expected)s::bigint
RETURNING until_us
