-- Undo what was written since the savepoint; the caller's transaction stands as before.
ROLLBACK TO SAVEPOINT perdure_within
