-- No row: nobody else writes before the commit, so nothing can have been counted meanwhile.
SELECT 1 WHERE false
