-- Serializable transactions need no lock here: of two that take a step, one is run again and finds it taken.
SELECT 0::bigint
