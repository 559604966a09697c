-- New tasks of a batch have gates.
UPDATE perdure_live AS live SET gated = 1 WHERE n IN (SELECT value FROM json_each(:batch)) AND gated = 0
