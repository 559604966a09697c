-- Remove lanes that nothing stands for.
DELETE FROM perdure_lanes AS lanes WHERE lane IN (SELECT value FROM json_each(:batch))
