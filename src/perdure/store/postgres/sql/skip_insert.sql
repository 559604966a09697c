-- Keep instants of a schedule that made nothing: rows of first, last, how many, reason and text.
INSERT INTO perdure_skips AS skips (organization, schedule, first_us, last_us, instants, reason, text, at_us)
SELECT
    %(organization)s::text, %(schedule)s::text, (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
    value ->> 3, value ->> 4, %(now)s::bigint
FROM jsonb_array_elements(%(batch)s::jsonb)
ON CONFLICT (organization, schedule, first_us) DO UPDATE
SET last_us = excluded.last_us, instants = excluded.instants, reason = excluded.reason, text = excluded.text,
    at_us = excluded.at_us
