-- Lease the next tasks of stretches of lanes to a worker, and tell all that their handlers need. The worker's row is locked.
-- Stretches are [lane, from, until, how many, order], the first to be taken first; others' claims are passed over. The
-- bounds are bounds of the index, so that what lies dead below them costs nothing. A new attempt has a fence above every
-- earlier one; the first claim sets the execution deadline. Attempts that an earlier call has made come back as they are.
-- A claim that is sent again after its attempt has ended makes no second attempt of that id. `first` and `last` are the ends of
-- where its ids lie: what else the worker holds mostly lies outside. Only a task that was tried before can have a checkpoint.
WITH room AS MATERIALIZED (
    SELECT
        CASE WHEN count(place) > 0 THEN 0 ELSE greatest(least(%(want)s::bigint, %(capacity)s::bigint - count(*)), 0) END AS free,
        least(min(fence), %(now)s::bigint) AS held_from, count(place) > 0 AS repeated
    FROM (
        SELECT
            live.fence,
            CASE WHEN live.attempt_id BETWEEN %(first)s::text AND %(last)s::text THEN %(known)s::jsonb -> live.attempt_id END
                AS place
        FROM perdure_live AS live
        WHERE live.worker = %(worker)s::text AND live.attempt_id IS NOT NULL AND live.fence >= %(held_from)s::bigint
    ) AS held
),
picked AS MATERIALIZED (
    SELECT stretch.band, next.n, next.seq, next.fence
    FROM (
        SELECT
            (value ->> 0)::bigint AS lane, (value ->> 1)::bigint AS first, (value ->> 2)::bigint AS last,
            (value ->> 3)::bigint AS count, (value ->> 4)::bigint AS band
        FROM jsonb_array_elements(%(stretches)s::jsonb) WITH ORDINALITY AS stretch (value, place)
        ORDER BY place
    ) AS stretch
    CROSS JOIN LATERAL (
        SELECT live.n, live.seq, live.fence
        FROM perdure_live AS live
        WHERE live.state = 'queued' AND live.lane = stretch.lane AND live.seq >= stretch.first AND live.seq <= stretch.last
        AND (live.expires_us IS NULL OR live.expires_us > %(now)s::bigint)
        AND (live.deadline_us IS NULL OR live.deadline_us > %(now)s::bigint)
        ORDER BY live.seq
        LIMIT stretch.count
        FOR UPDATE OF live SKIP LOCKED
    ) AS next
    LIMIT (SELECT free FROM room)
),
numbered AS MATERIALIZED (
    SELECT n, seq, fence, place, %(leases)s::jsonb -> place::integer AS lease
    FROM (
        SELECT n, seq, fence, row_number() OVER (ORDER BY band NULLS LAST, seq NULLS LAST) - 1 AS place FROM picked
    ) AS ordered
),
leased AS (
    UPDATE perdure_live AS live
    SET state = 'leased',
        seq = NULL,
        attempt_id = numbered.lease ->> 0,
        token = numbered.lease ->> 1,
        worker = %(worker)s::text,
        fence = greatest(live.fence + 1, %(now)s::bigint),
        -- Its transaction may have begun before the one that queued the task.
        leased_us = greatest(%(now)s::bigint, live.queued_us),
        started_us = NULL,
        deadline_us = coalesce(live.deadline_us, %(now)s::bigint + tasks.execution_limit_us),
        lease_ends_us = least(
            %(now)s::bigint + tasks.lease_us, coalesce(live.deadline_us, %(now)s::bigint + tasks.execution_limit_us)
        )
    FROM numbered
    CROSS JOIN LATERAL (SELECT * FROM perdure_tasks AS tasks WHERE tasks.n = numbered.n LIMIT 1) AS tasks
    WHERE live.n = ANY (ARRAY[numbered.n]) AND live.seq = numbered.seq
    AND (live.fence = 0 OR (
        SELECT count(*) FROM perdure_attempts AS attempts
        WHERE attempts.n = live.n AND attempts.id = numbered.lease ->> 0
    ) = 0)
    RETURNING
        live.n, live.organization, live.lane, live.job, live.attempt_id, live.token, live.failures, live.fence,
        live.generation, live.lease_ends_us, live.deadline_us, live.expires_us, numbered.seq, numbered.place,
        CASE WHEN numbered.fence > 0 THEN live.n END AS tried, tasks.id, tasks.payload,
        tasks.encoding, tasks.timeout_us, tasks.name, tasks.parents, tasks.retry, tasks.options, tasks.initiator,
        tasks.max_attempts
),
counted AS (
    INSERT INTO perdure_count_changes (lane, state, change)
    SELECT moves.lane, change.state, change.count
    FROM (SELECT lane, count(*) AS moved FROM leased GROUP BY lane) AS moves
    CROSS JOIN LATERAL (VALUES ('queued', -moves.moved), ('leased', moves.moved)) AS change (state, count)
),
moved AS (
    UPDATE perdure_workers AS workers
    SET held_from = room.held_from
    FROM room
    WHERE workers.id = %(worker)s::text
    AND (workers.held_from > room.held_from OR workers.held_from < room.held_from - %(held_step)s::bigint)
)
SELECT
    lease.organization, lease.id, lease.attempt_id, lease.token, lease.lane,
    CASE lease.encoding WHEN 'json' THEN convert_from(lease.payload, 'UTF8') ELSE encode(lease.payload, 'hex') END,
    lease.encoding, lease.failures + 1, lease.fence, lease.generation, lease.lease_ends_us - %(now)s::bigint,
    lease.timeout_us, lease.deadline_us - %(now)s::bigint, lease.expires_us - %(now)s::bigint, jobs.id, lease.name,
    lease.parents, lease.retry, lease.options::text, lease.initiator, checkpoints.value, lease.max_attempts,
    lease.seq, CASE jobs.state WHEN 'pending' THEN jobs.j END
FROM (
    SELECT * FROM leased
    UNION ALL
    SELECT
        live.n, live.organization, live.lane, live.job, live.attempt_id, live.token, live.failures, live.fence,
        live.generation, live.lease_ends_us, live.deadline_us, live.expires_us, NULL,
        (%(known)s::jsonb -> live.attempt_id)::bigint, live.n, tasks.id, tasks.payload,
        tasks.encoding, tasks.timeout_us, tasks.name, tasks.parents, tasks.retry, tasks.options, tasks.initiator,
        tasks.max_attempts
    FROM perdure_live AS live
    CROSS JOIN LATERAL (SELECT * FROM perdure_tasks AS tasks WHERE tasks.n = live.n LIMIT 1) AS tasks
    WHERE (SELECT repeated FROM room)
    AND live.worker = %(worker)s::text AND live.attempt_id IS NOT NULL AND live.fence >= %(held_from)s::bigint
    AND live.attempt_id BETWEEN %(first)s::text AND %(last)s::text AND %(known)s::jsonb ? live.attempt_id
) AS lease
LEFT JOIN LATERAL (
    SELECT jobs.j, jobs.id, jobs.state FROM perdure_jobs AS jobs
    WHERE jobs.j >= lease.job AND jobs.j <= lease.job
    ORDER BY jobs.j LIMIT 1
) AS jobs ON true
LEFT JOIN perdure_checkpoints AS checkpoints ON checkpoints.n = lease.tried AND checkpoints.generation = lease.generation
ORDER BY lease.place NULLS LAST
