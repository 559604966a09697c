-- Make gates that are not there yet; the limit of those that are is what the task submitted last says.
INSERT INTO perdure_gates AS gates (organization, sort, name, key, slots, per_us, when_full, said_us, used_us)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, :now
FROM json_each(:batch)
WHERE true
ON CONFLICT (organization, sort, name, key) DO UPDATE
SET slots = iif(excluded.said_us >= gates.said_us, excluded.slots, gates.slots),
    per_us = iif(excluded.said_us >= gates.said_us, excluded.per_us, gates.per_us),
    when_full = iif(excluded.said_us >= gates.said_us, excluded.when_full, gates.when_full),
    said_us = max(excluded.said_us, gates.said_us),
    used_us = :now
WHERE gates.used_us < :now - :fresh
OR (
    excluded.said_us >= gates.said_us
    AND (excluded.slots, excluded.per_us, excluded.when_full) IS NOT (gates.slots, gates.per_us, gates.when_full)
)
