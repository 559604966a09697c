-- Bind keys to what is about to be made: the places of those that were free or had run out. A key that another
-- transaction is binding is waited for; in ascending order, so that two who want the same keys never wait for each other.
WITH asked AS MATERIALIZED (
    SELECT
        item.place - 1 AS place, item.value ->> 0 AS organization, item.value ->> 1 AS principal, item.value ->> 2 AS key,
        item.value ->> 3 AS id, item.value ->> 4 AS request_hash
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
),
taken AS (
    INSERT INTO perdure_idempotency AS known (organization, principal, what, key, id, request_hash, expires_us)
    SELECT
        asked.organization, asked.principal, %(what)s::text, asked.key, asked.id, asked.request_hash,
        %(now)s::bigint + %(life)s::bigint
    FROM asked
    ORDER BY asked.organization, asked.principal, asked.key
    ON CONFLICT (organization, principal, what, key) DO UPDATE
    SET id = excluded.id, request_hash = excluded.request_hash, expires_us = excluded.expires_us
    WHERE known.expires_us <= %(now)s::bigint
    RETURNING organization, principal, key
)
SELECT coalesce(jsonb_agg(asked.place), '[]')::text
FROM asked
JOIN taken USING (organization, principal, key)
