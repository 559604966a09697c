-- Make gates that are not there yet; the limit of those that are is what the task submitted last says. All of them are kept
-- from others until the commit, in the order of the batch.
INSERT INTO perdure_gates AS gates (organization, sort, name, key, slots, per_us, when_full, said_us, used_us, waited)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, (value ->> 4)::bigint, (value ->> 5)::bigint, value ->> 6,
    (value ->> 7)::bigint, %(now)s::bigint, false
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
ORDER BY asked.place
ON CONFLICT (organization, sort, name, key) DO UPDATE
SET slots = CASE WHEN excluded.said_us >= gates.said_us THEN excluded.slots ELSE gates.slots END,
    per_us = CASE WHEN excluded.said_us >= gates.said_us THEN excluded.per_us ELSE gates.per_us END,
    when_full = CASE WHEN excluded.said_us >= gates.said_us THEN excluded.when_full ELSE gates.when_full END,
    said_us = greatest(excluded.said_us, gates.said_us),
    used_us = %(now)s::bigint
WHERE gates.used_us < %(now)s::bigint - %(fresh)s::bigint
OR (
    excluded.said_us >= gates.said_us
    AND (excluded.slots, excluded.per_us, excluded.when_full) IS DISTINCT FROM (gates.slots, gates.per_us, gates.when_full)
)
