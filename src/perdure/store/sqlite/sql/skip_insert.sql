-- Keep instants of a schedule that made nothing: rows of first, last, how many, reason and text.
INSERT INTO perdure_skips AS skips (organization, schedule, first_us, last_us, instants, reason, text, at_us)
SELECT
    :organization, :schedule, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now
FROM json_each(:batch)
WHERE true
ON CONFLICT (organization, schedule, first_us) DO UPDATE
SET last_us = excluded.last_us, instants = excluded.instants, reason = excluded.reason, text = excluded.text,
    at_us = excluded.at_us
