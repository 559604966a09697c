-- Note that a step was taken.
INSERT INTO perdure_migrations (number, name, applied_us) VALUES (:number, :name, :applied_us)
