-- Extend live leases, never past the deadline; while a cancel is requested, not past the time to stop. Rows are locked in
-- ascending order, less strictly than by a settle: a receipt that is not committed yet holds no renewal up.
-- Answers with the attempts that were renewed: place in the batch, lane, whether it starts, rest of lease and of the time
-- to stop. One may be named twice, by a renewal that is sent again: what either says counts, the first is answered.
WITH asked AS MATERIALIZED (
    SELECT
        min(item.place) - 1 AS place,
        item.value ->> 0 AS organization, item.value ->> 1 AS task, item.value ->> 2 AS attempt, item.value ->> 3 AS token,
        bool_or((item.value ->> 4)::boolean) AS started,
        bool_or((item.value ->> 5)::boolean) AS delivered,
        max((item.value ->> 6)::bigint) AS ran_us,
        max((item.value ->> 7)::bigint) AS told_us
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
    GROUP BY item.value ->> 0, item.value ->> 1, item.value ->> 2, item.value ->> 3
),
locked AS MATERIALIZED (
    SELECT
        live.n, asked.place, asked.ran_us, asked.told_us, tasks.lease_us,
        live.state = 'leased' AND asked.started AS starts,
        live.state = 'cancelling' AND asked.delivered AS told
    FROM asked
    JOIN perdure_tasks AS tasks ON tasks.organization = ANY (ARRAY[asked.organization]) AND tasks.id = ANY (ARRAY[asked.task])
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n])
    WHERE live.attempt_id = asked.attempt AND live.token = asked.token
    AND live.state IN ('leased', 'running', 'cancelling')
    AND live.lease_ends_us > %(now)s::bigint AND live.deadline_us > %(now)s::bigint
    AND coalesce(live.cancel_ends_us, %(now)s::bigint + 1) > %(now)s::bigint
    AND NOT EXISTS (
        SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke'
    )
    ORDER BY live.n
    FOR NO KEY UPDATE OF live
),
renewed AS (
    UPDATE perdure_live AS live
    SET lease_ends_us = least(
            %(now)s::bigint + locked.lease_us, live.deadline_us, coalesce(live.cancel_ends_us, live.deadline_us)
        ),
        state = CASE WHEN locked.starts THEN 'running' ELSE live.state END,
        started_us = CASE
            WHEN locked.starts
                THEN least(%(now)s::bigint, greatest(live.leased_us, %(now)s::bigint - coalesce(locked.ran_us, 0)))
            ELSE live.started_us
        END,
        cancel_delivered_us = CASE
            WHEN locked.told THEN coalesce(
                live.cancel_delivered_us,
                least(%(now)s::bigint, greatest(live.cancel_us, %(now)s::bigint - coalesce(locked.told_us, 0)))
            )
            ELSE live.cancel_delivered_us
        END
    FROM locked
    WHERE live.n = ANY (ARRAY[locked.n])
    RETURNING
        locked.place, live.lane, locked.starts,
        live.lease_ends_us - %(now)s::bigint AS lease_us, live.cancel_ends_us - %(now)s::bigint AS cancel_us
)
SELECT coalesce(jsonb_agg(jsonb_build_array(place, lane, starts, lease_us, cancel_us)), '[]')::text
FROM renewed
