-- Keep an operator's order to a worker that serves the operator's organization, and who gave it.
UPDATE perdure_workers AS workers
SET ordered = %(ordered)s::text, ordered_by = %(actor)s::text, ordered_us = %(now)s::bigint
WHERE id = %(id)s::text
AND (organizations = '[]' OR organizations @> to_jsonb(%(organization)s::text))
RETURNING 1
