-- Store new tasks that are due now, have nothing rare and share their terms, as `submit_one` does one: what they share is bound
-- once, and of each its id and its payload, which costs the server less than a document. All are written or none: none while
-- something has a depth, or where one exists already. Answers whether they were. New ids mostly lie where no others are:
-- `first` and `last` are the ends of that, so that it is looked at once, and not for each.
WITH gate AS MATERIALIZED (
    SELECT NOT EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions
        WHERE type IN ('queue', 'organization') AND document ->> 'depth' IS NOT NULL
    ) AND (
        NOT EXISTS (
            SELECT 1 FROM perdure_tasks AS tasks
            WHERE tasks.organization = %(organization)s::text AND tasks.id BETWEEN %(first)s::text AND %(last)s::text
        )
        OR NOT EXISTS (
            SELECT 1 FROM perdure_tasks AS tasks
            WHERE tasks.organization = %(organization)s::text AND tasks.id = ANY (%(ids)s::text[])
        )
    ) AS open
),
item AS MATERIALIZED (
    SELECT nextval('perdure_tasks_n_seq') AS n, nextval('perdure_seq') AS seq, own.id, own.payload
    FROM unnest(%(ids)s::text[], %(payloads)s::bytea[]) AS own (id, payload)
    WHERE (SELECT open FROM gate)
),
tasks AS (
    INSERT INTO perdure_tasks (
        n, organization, id, lane, payload, encoding, principal, initiator, created_us, ttl_us,
        execution_limit_us, timeout_us, lease_us, max_attempts, max_losses, on_loss, rule, if_failed, retry
    )
    SELECT
        n, %(organization)s::text, id, %(lane)s::bigint, payload, %(encoding)s::text,
        %(principal)s::text, %(initiator)s::text, %(now)s::bigint, %(ttl_us)s::bigint, %(execution_limit_us)s::bigint,
        %(timeout_us)s::bigint, %(lease_us)s::bigint, %(max_attempts)s::bigint, %(max_losses)s::bigint, %(on_loss)s::text,
        %(trigger)s::text, %(if_failed)s::text, %(retry)s::text
    FROM item
),
live AS (
    INSERT INTO perdure_live (n, organization, lane, state, seq, due_us, expires_us, queued_us)
    SELECT
        n, %(organization)s::text, %(lane)s::bigint, 'queued', seq, %(now)s::bigint,
        %(now)s::bigint + %(ttl_us)s::bigint, %(now)s::bigint
    FROM item
),
counted AS (
    INSERT INTO perdure_count_changes (lane, state, change)
    SELECT %(lane)s::bigint, 'queued', count(*) FROM item HAVING count(*) > 0
)
SELECT open FROM gate
