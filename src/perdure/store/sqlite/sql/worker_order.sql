-- Keep an operator's order to a worker.
UPDATE workers SET ordered = :ordered WHERE id = :id RETURNING 1
