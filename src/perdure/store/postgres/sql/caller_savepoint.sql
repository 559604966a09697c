-- Remember where the caller's transaction stands.
SAVEPOINT perdure_within
