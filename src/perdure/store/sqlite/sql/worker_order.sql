-- Keep an operator's order to a worker.
UPDATE perdure_workers AS workers SET ordered = :ordered WHERE id = :id RETURNING 1
