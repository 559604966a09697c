-- Lock the tasks of attempts that a duty is to end, and answer with the places of those that it can have now. One whose
-- handler has written its receipt and has yet to commit is left to a later run: nobody waits for a transaction of users.
WITH locked AS MATERIALIZED (
    SELECT asked.place
    FROM jsonb_array_elements(%(batch)s::jsonb) AS item (value)
    CROSS JOIN LATERAL (
        SELECT (item.value ->> 0)::bigint AS place, tasks.n
        FROM perdure_tasks AS tasks
        WHERE tasks.organization = item.value ->> 1 AND tasks.id = item.value ->> 2
        LIMIT 1
    ) AS asked
    JOIN perdure_live AS live ON live.n = asked.n
    WHERE live.attempt_id = item.value ->> 3
    FOR UPDATE OF live SKIP LOCKED
)
SELECT coalesce(jsonb_agg(place), '[]')::text
FROM locked
