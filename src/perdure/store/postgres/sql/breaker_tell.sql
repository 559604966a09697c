-- The time of open breakers has come: it is told once.
UPDATE perdure_breakers AS breakers
SET tell_us = NULL
WHERE tell_us IS NOT NULL AND tell_us <= %(now)s::bigint
RETURNING organization, kind
