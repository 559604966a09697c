-- One migrates at a time; the lock goes with the transaction. The number is perdure's own.
SELECT pg_advisory_xact_lock(7237118936021934)
