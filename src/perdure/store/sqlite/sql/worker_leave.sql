-- Note that a worker is gone for good.
UPDATE perdure_workers AS workers SET left_us = :now WHERE id = :id AND left_us IS NULL
