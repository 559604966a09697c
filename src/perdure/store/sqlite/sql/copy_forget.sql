-- The copy is complete.
DELETE FROM perdure_meta AS meta WHERE key = 'copy_origin'
