-- Keep an operator's order to a worker that serves the operator's organization, and who gave it.
UPDATE perdure_workers AS workers SET ordered = :ordered, ordered_by = :actor, ordered_us = :now
WHERE id = :id
AND (organizations = '[]' OR :organization IN (SELECT value FROM json_each(organizations)))
RETURNING 1
