-- Extend live leases, never past the deadline; while a cancel is requested, not past the time to stop.
UPDATE perdure_live AS live
SET lease_ends_us = min(:now + tasks.lease_us, live.deadline_us, coalesce(live.cancel_ends_us, live.deadline_us)),
    state = CASE WHEN live.state = 'leased' AND asked.value ->> 4 THEN 'running' ELSE live.state END,
    started_us = CASE
        WHEN live.state = 'leased' AND asked.value ->> 4 THEN min(:now, max(live.leased_us, :now - (asked.value ->> 6)))
        ELSE live.started_us
    END,
    cancel_delivered_us = CASE
        WHEN live.state = 'cancelling' AND asked.value ->> 5
            THEN coalesce(live.cancel_delivered_us, min(:now, max(live.cancel_us, :now - (asked.value ->> 7))))
        ELSE live.cancel_delivered_us
    END
FROM json_each(:batch) AS asked
JOIN perdure_tasks AS tasks ON tasks.organization = asked.value ->> 0 AND tasks.id = asked.value ->> 1
-- Not a cross join: that would read the live rows first.
WHERE live.n = tasks.n
AND live.attempt_id = asked.value ->> 2 AND live.token = asked.value ->> 3
AND live.state IN ('leased', 'running', 'cancelling')
AND live.lease_ends_us > :now AND live.deadline_us > :now
AND coalesce(live.cancel_ends_us, :now + 1) > :now
AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
