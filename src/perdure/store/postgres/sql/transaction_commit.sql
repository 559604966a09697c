-- Commit.
COMMIT
