-- Nobody is told when a caller's transaction is over: it has no number that others could ask for.
SELECT 0::bigint
