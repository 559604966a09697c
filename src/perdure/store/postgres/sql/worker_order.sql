-- Keep an operator's order to a worker that serves the operator's organization.
UPDATE perdure_workers AS workers
SET ordered = %(ordered)s::text
WHERE id = %(id)s::text
AND (organizations = '[]' OR organizations @> to_jsonb(%(organization)s::text))
RETURNING 1
