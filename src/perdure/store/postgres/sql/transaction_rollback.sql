-- Undo what was not committed.
ROLLBACK
