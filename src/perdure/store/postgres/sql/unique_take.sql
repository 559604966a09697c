-- Take keys that nobody holds: rows of organization, key, task, until. All of them are kept from others until the commit, in
-- ascending order, so that two who want the same keys never wait for each other.
INSERT INTO perdure_unique_keys AS keys (organization, key, task_id, taken_us, until_us)
SELECT value ->> 0, value ->> 1, value ->> 2, %(now)s::bigint, (value ->> 3)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
ORDER BY asked.place
ON CONFLICT (organization, key) DO UPDATE SET key = excluded.key
