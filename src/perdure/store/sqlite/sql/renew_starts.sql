-- How many attempts of a batch start by this renewal, by lane. One may be named twice: by a renewal that is sent again.
SELECT json_group_array(json_array(lane, started))
FROM (
    SELECT live.lane, count(DISTINCT live.n) AS started
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_tasks AS tasks ON tasks.organization = asked.value ->> 0 AND tasks.id = asked.value ->> 1
    CROSS JOIN perdure_live AS live ON live.n = tasks.n
    WHERE asked.value ->> 4
    AND live.attempt_id = asked.value ->> 2 AND live.token = asked.value ->> 3
    AND live.state = 'leased' AND live.lease_ends_us > :now AND live.deadline_us > :now
    AND NOT EXISTS (SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke')
    GROUP BY live.lane
)
