-- Note that a step was taken.
INSERT INTO perdure_migrations (number, name, applied_us)
VALUES (%(number)s::bigint, %(name)s::text, %(applied_us)s::bigint)
