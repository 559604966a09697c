-- What was written since the savepoint is part of the caller's transaction.
RELEASE SAVEPOINT perdure_within
