-- How the attempts of a batch stand that report, as hold_standing tells it: here a transaction has the file to itself.
SELECT json_group_array(json_array(
    asked.key, live.n, live.lane, live.state, live.lease_ends_us - :now, live.cancel_ends_us - :now, live.generation
))
FROM json_each(:batch) AS asked
CROSS JOIN perdure_tasks AS tasks ON tasks.organization = asked.value ->> 0 AND tasks.id = asked.value ->> 1
CROSS JOIN perdure_live AS live ON live.n = tasks.n
WHERE live.attempt_id = asked.value ->> 2 AND live.token = asked.value ->> 3
AND live.lease_ends_us > :now AND live.deadline_us > :now
AND coalesce(live.cancel_ends_us, :now + 1) > :now
AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
