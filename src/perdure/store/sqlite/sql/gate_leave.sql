-- Tasks of a batch have passed the gates at which they waited.
UPDATE perdure_live AS live
SET gate = NULL, turn = NULL, due_us = min(live.due_us, :due)
WHERE n IN (SELECT value FROM json_each(:batch)) AND gate IS NOT NULL
