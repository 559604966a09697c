-- How the attempts of a batch stand that report, where they are live: place in the batch, task number, lane, state, rest
-- of lease and of the time to stop, generation. Locks them in ascending order: nobody ends one before the report is kept.
WITH standing AS MATERIALIZED (
    SELECT
        asked.place - 1 AS place, live.n, live.lane, live.state, live.lease_ends_us, live.cancel_ends_us, live.generation
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
    JOIN perdure_tasks AS tasks ON tasks.organization = ANY (ARRAY[asked.value ->> 0]) AND tasks.id = ANY (ARRAY[asked.value ->> 1])
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n])
    WHERE live.attempt_id = asked.value ->> 2 AND live.token = asked.value ->> 3
    AND live.lease_ends_us > %(now)s::bigint AND live.deadline_us > %(now)s::bigint
    AND coalesce(live.cancel_ends_us, %(now)s::bigint + 1) > %(now)s::bigint
    AND NOT EXISTS (
        SELECT 1 FROM perdure_workers AS workers WHERE workers.id = live.worker AND workers.ordered = 'revoke'
    )
    ORDER BY live.n
    FOR NO KEY UPDATE OF live
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    place, n, lane, state, lease_ends_us - %(now)s::bigint, cancel_ends_us - %(now)s::bigint, generation
)), '[]')::text
FROM standing
